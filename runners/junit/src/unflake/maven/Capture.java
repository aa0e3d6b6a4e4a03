package unflake.maven;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

import org.apache.maven.execution.MojoExecutionEvent;
import org.apache.maven.execution.MojoExecutionListener;
import org.apache.maven.model.Resource;
import org.apache.maven.plugin.MojoExecution;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.project.MavenProject;

import unflake.junit.Json;

/**
 * Sees each JVM of tests that Maven is about to start, and writes down how.
 *
 * <p>Surefire is pointed at a program of ours in place of `java`, which copies what it is given and runs
 * no test. The folder for the records comes by the environment, because every `-D` given to Maven
 * becomes a system property of the tests.
 */
public final class Capture implements MojoExecutionListener {
    private final Path folder = folder();
    private int count;
    private long began;

    private static Path folder() {
        String folder = System.getenv("UNFLAKE_CAPTURE");
        return folder == null ? null : Paths.get(folder);
    }

    @Override
    public void beforeMojoExecution(MojoExecutionEvent event) throws MojoExecutionException {
        if (folder == null || !runsTests(event.getExecution())) {
            return;
        }
        try {
            count++;
            began = System.currentTimeMillis();
            Path record = folder.resolve(String.valueOf(count));
            Files.createDirectories(record);
            Object mojo = event.getMojo();
            Map<String, Object> found = describe(event);
            write(record.resolve("module.json"), found);
            write(folder.resolve("current"), String.valueOf(count));
            write(record.resolve("java"), String.valueOf(found.get("java")));
            set(mojo, "jvm", folder.resolve("jdk/bin/java").toString());
            set(mojo, "forkCount", "1");
            set(mojo, "reuseForks", true);
            set(mojo, "forkMode", "once");
            set(mojo, "testFailureIgnore", true);
            set(mojo, "failIfNoTests", false);
            set(mojo, "failIfNoSpecifiedTests", false);
            set(mojo, "rerunFailingTestsCount", 0);
            set(mojo, "debugForkedProcess", null);
            // Jigsaw and the version of the language are read from the JDK's own file.
            Path release = Paths.get(String.valueOf(found.get("jdk")), "release");
            if (Files.isRegularFile(release)) {
                Files.write(folder.resolve("jdk/release"), Files.readAllBytes(release));
            }
        } catch (IOException error) {
            throw new MojoExecutionException("unflake cannot write down how the tests are run", error);
        }
    }

    @Override
    public void afterMojoExecutionSuccess(MojoExecutionEvent event) throws MojoExecutionException {
        if (folder == null || !runsTests(event.getExecution())) {
            return;
        }
        Path record = folder.resolve(String.valueOf(count));
        try {
            Map<String, Object> found = describe(event);
            if (!Files.isDirectory(record.resolve("files"))) {
                // There are no tests, or they are skipped, or Surefire went past us.
                found.put("bypassed", hasReports(event.getMojo()));
                write(record.resolve("module.json"), found);
                return;
            }
            found.putAll(describeProcess(record));
            write(record.resolve("module.json"), found);
        } catch (IOException error) {
            throw new MojoExecutionException("unflake cannot read how the tests are run", error);
        }
    }

    @Override
    public void afterExecutionFailure(MojoExecutionEvent event) {
        // Maven says what is wrong.
    }

    private static boolean runsTests(MojoExecution execution) {
        String plugin = execution.getArtifactId();
        String goal = execution.getGoal();
        return plugin.equals("maven-surefire-plugin") && goal.equals("test")
                || plugin.equals("maven-failsafe-plugin") && goal.equals("integration-test");
    }

    private final Map<String, Map<String, Object>> described = new TreeMap<>();

    /** The facts about the project, and the plugin's settings as they were before we changed any. */
    private Map<String, Object> describe(MojoExecutionEvent event) {
        MavenProject project = event.getProject();
        MojoExecution execution = event.getExecution();
        Object mojo = event.getMojo();
        String key = String.valueOf(count);
        Map<String, Object> known = described.get(key);
        if (known != null) {
            return known;
        }
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("basedir", project.getBasedir().getPath());
        found.put("module", project.getGroupId() + ":" + project.getArtifactId());
        found.put("execution", execution.getExecutionId());
        found.put("goal", execution.getGoal());
        found.put("surefire", execution.getVersion());
        String java = java(mojo);
        found.put("java", java);
        File home = new File(java).getParentFile();
        found.put("jdk", home == null ? "" : String.valueOf(home.getParent()));
        found.put("sources", project.getCompileSourceRoots());
        found.put("test_sources", project.getTestCompileSourceRoots());
        found.put("resources", resources(project));
        found.put("filtered", filtered(project));
        found.put("inputs", new ArrayList<Object>(new Inputs(project).files()));
        found.put("test_classes", String.valueOf(get(mojo, "testClassesDirectory")));
        found.put("skipped", isTrue(mojo, "skip") || isTrue(mojo, "skipTests") || isTrue(mojo, "skipExec")
                || isTrue(mojo, "skipITs"));
        found.put("fork_count", text(get(mojo, "forkCount")));
        found.put("fork_mode", text(get(mojo, "forkMode")));
        found.put("reuse_forks", !Boolean.FALSE.equals(get(mojo, "reuseForks")));
        found.put("parallel", text(get(mojo, "parallel")));
        found.put("system_class_loader", !Boolean.FALSE.equals(get(mojo, "useSystemClassLoader")));
        described.put(key, found);
        return found;
    }

    /** Whether Surefire has reported tests since we asked it to run none. */
    private boolean hasReports(Object mojo) {
        Object folder = get(mojo, "reportsDirectory");
        File[] reports = folder instanceof File ? ((File) folder).listFiles() : null;
        for (File report : reports == null ? new File[0] : reports) {
            if (report.getName().startsWith("TEST-") && report.lastModified() >= began) {
                return true;
            }
        }
        return false;
    }

    private static List<Resource> allResources(MavenProject project) {
        List<Resource> all = new ArrayList<>(project.getBuild().getResources());
        all.addAll(project.getBuild().getTestResources());
        return all;
    }

    /** The folders of resources in which Maven puts values in the place of names. */
    private static List<String> filtered(MavenProject project) {
        List<String> found = new ArrayList<>();
        for (Resource resource : allResources(project)) {
            if (resource.isFiltering()) {
                found.add(resource.getDirectory());
            }
        }
        return found;
    }

    /** The folders that resources are copied from, and the files where only some of a folder are. */
    private static List<String> resources(MavenProject project) {
        List<String> found = new ArrayList<>();
        for (Resource resource : allResources(project)) {
            List<String> includes = resource.getIncludes();
            if (includes == null || includes.isEmpty()) {
                found.add(resource.getDirectory());
                continue;
            }
            // Many projects copy their licence out of the root: nothing else there is a resource.
            for (String include : includes) {
                found.add(new File(resource.getDirectory(), fixedPart(include)).getPath());
            }
        }
        return found;
    }

    /** The file that a pattern names, or the folder that all of its files are in. */
    private static String fixedPart(String pattern) {
        String[] parts = pattern.replace('\\', '/').split("/");
        StringBuilder fixed = new StringBuilder();
        for (String part : parts) {
            if (part.contains("*") || part.contains("?") || part.startsWith("%regex[")) {
                break;
            }
            fixed.append(fixed.length() == 0 ? "" : "/").append(part);
        }
        return fixed.toString();
    }

    /** The program that Surefire would start. */
    private static String java(Object mojo) {
        Object jvm = get(mojo, "jvm");
        if (jvm != null && !jvm.toString().isEmpty()) {
            return jvm.toString();
        }
        try {
            Object toolchain = call(mojo, "getToolchain");
            if (toolchain != null) {
                Object tool = toolchain.getClass().getMethod("findTool", String.class).invoke(toolchain, "java");
                if (tool != null) {
                    return tool.toString();
                }
            }
        } catch (ReflectiveOperationException error) {
            // No toolchain that we can ask: Surefire takes Maven's own JDK.
        }
        return Paths.get(System.getProperty("java.home"), "bin", "java").toString();
    }

    private static Map<String, Object> describeProcess(Path record) throws IOException {
        Path files = record.resolve("files");
        List<String> arguments = words(record.resolve("arguments"));
        Map<String, Object> found = new LinkedHashMap<>();
        int at = 0;
        List<String> before = new ArrayList<>();
        List<String> modular = new ArrayList<>();
        while (at < arguments.size()) {
            String argument = arguments.get(at);
            if (argument.equals("-jar")) {
                at += 2;
                break;
            }
            if (argument.startsWith("@") && argument.contains("surefireargs")) {
                Path file = files.resolve(Paths.get(argument.substring(1)).getFileName());
                modular = Files.readAllLines(file, StandardCharsets.UTF_8);
                at++;
                break;
            }
            if (argument.endsWith(".ForkedBooter")) {
                at++;
                break;
            }
            before.add(argument);
            at++;
        }
        found.put("jvm_args", before);
        found.put("modular", modular);
        Properties booter = new Properties();
        Properties system = new Properties();
        for (String argument : arguments.subList(at, arguments.size())) {
            Path file = files.resolve(Paths.get(argument).getFileName());
            if (!Files.isRegularFile(file)) {
                continue;
            }
            Properties read = new Properties();
            try (InputStream in = new FileInputStream(file.toFile())) {
                read.load(in);
            }
            if (read.getProperty("providerConfiguration") != null) {
                booter = read;
            } else {
                system = read;
            }
        }
        system.remove("maven.ext.class.path");
        found.put("classpath", numbered(booter, "classPathUrl."));
        found.put("provider_classpath", numbered(booter, "surefireClassPathUrl."));
        found.put("tests", numbered(booter, "tc."));
        found.put("provider", booter.getProperty("providerConfiguration"));
        found.put("settings", settings(booter));
        found.put("system_properties", new TreeMap<Object, Object>(system));
        return found;
    }

    private static Map<String, Object> settings(Properties booter) {
        Map<String, Object> settings = new TreeMap<>();
        for (String name : booter.stringPropertyNames()) {
            if (!name.startsWith("tc.") && !name.contains("lassPathUrl.")) {
                settings.put(name, booter.getProperty(name));
            }
        }
        return settings;
    }

    private static List<String> numbered(Properties properties, String prefix) {
        List<String> values = new ArrayList<>();
        for (int i = 0; properties.getProperty(prefix + i) != null; i++) {
            values.add(properties.getProperty(prefix + i));
        }
        return values;
    }

    private static List<String> words(Path file) throws IOException {
        List<String> words = new ArrayList<>();
        String text = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        int start = 0;
        for (int end = text.indexOf('\0'); end >= 0; end = text.indexOf('\0', start)) {
            words.add(text.substring(start, end));
            start = end + 1;
        }
        return words;
    }

    private static void write(Path file, Object value) throws IOException {
        String text = value instanceof String ? (String) value : Json.write(value);
        Files.write(file, text.getBytes(StandardCharsets.UTF_8));
    }

    private static String text(Object value) {
        return value == null ? null : value.toString();
    }

    private static boolean isTrue(Object mojo, String field) {
        return Boolean.TRUE.equals(get(mojo, field));
    }

    private static Object call(Object target, String method) throws ReflectiveOperationException {
        for (Class<?> type = target.getClass(); type != null; type = type.getSuperclass()) {
            for (java.lang.reflect.Method one : type.getDeclaredMethods()) {
                if (one.getName().equals(method) && one.getParameterCount() == 0) {
                    one.setAccessible(true);
                    return one.invoke(target);
                }
            }
        }
        return null;
    }

    private static Object get(Object target, String name) {
        try {
            Field field = field(target, name);
            return field == null ? null : field.get(target);
        } catch (IllegalAccessException error) {
            return null;
        }
    }

    /** Sets a setting of the plugin; one that this version does not have needs no setting. */
    private static void set(Object target, String name, Object value) {
        try {
            Field field = field(target, name);
            boolean fits = field != null && (value == null ? !field.getType().isPrimitive()
                    : field.getType().isInstance(value) || field.getType().isPrimitive());
            if (fits) {
                field.set(target, value);
            }
        } catch (IllegalAccessException error) {
            throw new IllegalStateException("cannot set " + name, error);
        }
    }

    private static Field field(Object target, String name) {
        for (Class<?> type = target.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        return null;
    }
}
