package org.apache.maven.model;

public class Resource extends FileSet {
    public boolean isFiltering() {
        return false;
    }
}
