package org.apache.maven.model;

public class FileSet {
    public String getDirectory() {
        return null;
    }
}
