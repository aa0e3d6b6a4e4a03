package org.apache.maven.model;

public class FileSet extends PatternSet {
    public String getDirectory() {
        return null;
    }
}
