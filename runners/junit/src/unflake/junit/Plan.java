package unflake.junit;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Surefire's instructions to the JVM of the tests, as they were recorded, with paths as they are now. */
final class Plan {
    private final Map<String, Object> record;
    private final String from;
    private final String to;

    /** Reads a record; the project was moved {@code from} a folder {@code to} another. */
    @SuppressWarnings("unchecked")
    Plan(Path file, String from, String to) throws IOException {
        String text = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        this.record = (Map<String, Object>) Json.read(text);
        this.from = from;
        this.to = to;
    }

    String text(String key) {
        Object value = record.get(key);
        return value == null ? "" : moved(value.toString());
    }

    List<String> texts(String key) {
        List<String> texts = new ArrayList<>();
        Object values = record.get(key);
        if (values instanceof List) {
            for (Object value : (List<?>) values) {
                texts.add(moved(String.valueOf(value)));
            }
        }
        return texts;
    }

    @SuppressWarnings("unchecked")
    Map<String, Object> settings() {
        return (Map<String, Object>) record.get("settings");
    }

    /** Sets the system properties that Surefire would set. */
    void setSystemProperties() {
        Map<?, ?> properties = (Map<?, ?>) record.get("system_properties");
        for (Map.Entry<?, ?> property : properties.entrySet()) {
            System.setProperty(String.valueOf(property.getKey()), moved(String.valueOf(property.getValue())));
        }
        String classpath = String.join(System.getProperty("path.separator"), texts("classpath"));
        System.setProperty("surefire.test.class.path", classpath);
        System.setProperty("surefire.real.class.path", System.getProperty("java.class.path"));
        System.setProperty("java.class.path", classpath);
    }

    private String moved(String text) {
        return from.equals(to) ? text : text.replace(from, to);
    }
}
