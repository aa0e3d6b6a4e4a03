package org.apache.maven.model;

public class ConfigurationContainer {
    public Object getConfiguration() {
        return null;
    }
}
