package org.apache.maven.project;

import java.io.File;
import java.util.List;

import org.apache.maven.model.Build;

public class MavenProject {
    public File getBasedir() {
        return null;
    }

    public File getFile() {
        return null;
    }

    public MavenProject getParent() {
        return null;
    }

    public String getGroupId() {
        return null;
    }

    public String getArtifactId() {
        return null;
    }

    public Build getBuild() {
        return null;
    }

    public List<String> getCompileSourceRoots() {
        return null;
    }

    public List<String> getTestCompileSourceRoots() {
        return null;
    }
}
