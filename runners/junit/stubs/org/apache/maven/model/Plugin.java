package org.apache.maven.model;

import java.util.List;

public class Plugin extends ConfigurationContainer {
    public List<PluginExecution> getExecutions() {
        return null;
    }
}
