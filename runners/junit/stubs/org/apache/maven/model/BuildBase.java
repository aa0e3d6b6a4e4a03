package org.apache.maven.model;

import java.util.List;

public class BuildBase {
    public List<String> getFilters() {
        return null;
    }

    public List<Plugin> getPlugins() {
        return null;
    }

    public List<Resource> getResources() {
        return null;
    }

    public List<Resource> getTestResources() {
        return null;
    }
}
