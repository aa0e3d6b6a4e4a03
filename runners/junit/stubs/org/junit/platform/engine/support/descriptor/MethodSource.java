package org.junit.platform.engine.support.descriptor;

import org.junit.platform.engine.TestSource;

public class MethodSource implements TestSource {
    public String getClassName() {
        return null;
    }

    public String getMethodName() {
        return null;
    }

    public String getMethodParameterTypes() {
        return null;
    }
}
