package org.apache.maven.project;

import java.io.File;
import java.util.List;

public class MavenProject {
    public File getBasedir() {
        return null;
    }

    public String getGroupId() {
        return null;
    }

    public String getArtifactId() {
        return null;
    }

    public List<String> getCompileSourceRoots() {
        return null;
    }

    public List<String> getTestCompileSourceRoots() {
        return null;
    }
}
