package unflake.maven;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

import org.apache.maven.model.ConfigurationContainer;
import org.apache.maven.model.Plugin;
import org.apache.maven.project.MavenProject;

/** The files that the effective model of a project names: parents, filters, and whatever a plugin is told to read. */
final class Inputs {
    private final MavenProject project;
    private final Set<String> found = new TreeSet<>();

    Inputs(MavenProject project) {
        this.project = project;
    }

    Set<String> files() {
        for (MavenProject one = project; one != null; one = one.getParent()) {
            if (one.getFile() != null) {
                found.add(one.getFile().getPath());
            }
        }
        for (String filter : project.getBuild().getFilters()) {
            name(filter);
        }
        for (Plugin plugin : project.getBuild().getPlugins()) {
            List<ConfigurationContainer> parts = new ArrayList<>(plugin.getExecutions());
            parts.add(plugin);
            for (ConfigurationContainer part : parts) {
                // An element of XML, as a text.
                for (String word : String.valueOf(part.getConfiguration()).split("[<>\"',;\\s]+")) {
                    name(word);
                }
            }
        }
        return found;
    }

    /** Takes what is the name of a file. */
    private void name(String word) {
        File file = new File(word);
        File absolute = file.isAbsolute() ? file : new File(project.getBasedir(), word);
        if (!word.isEmpty() && absolute.isFile()) {
            found.add(absolute.getPath());
        }
    }
}
