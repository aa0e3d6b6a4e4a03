package org.junit.platform.engine;

import java.util.Optional;

public class TestExecutionResult {
    public enum Status {
        SUCCESSFUL, ABORTED, FAILED
    }

    public Status getStatus() {
        return null;
    }

    public Optional<Throwable> getThrowable() {
        return null;
    }
}
