package org.apache.maven.model;

import java.util.List;

public class PatternSet {
    public List<String> getIncludes() {
        return null;
    }
}
