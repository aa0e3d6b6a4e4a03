package org.junit.runner;

import java.lang.annotation.Annotation;
import java.util.ArrayList;

public class Description {
    public ArrayList<Description> getChildren() {
        return null;
    }

    public String getDisplayName() {
        return null;
    }

    public boolean isTest() {
        return false;
    }

    public boolean isSuite() {
        return false;
    }

    public <T extends Annotation> T getAnnotation(Class<T> type) {
        return null;
    }
}
