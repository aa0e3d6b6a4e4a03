package org.apache.maven.model;

import java.util.List;

public class BuildBase {
    public List<Resource> getResources() {
        return null;
    }

    public List<Resource> getTestResources() {
        return null;
    }
}
