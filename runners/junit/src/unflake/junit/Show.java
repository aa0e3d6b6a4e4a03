package unflake.junit;

import java.util.List;

/** Values in short texts, without calling any method of the project. */
final class Show {
    private static final int LONGEST = 60;
    private static final int MOST = 5;

    private Show() {
    }

    /** Whether a value is told by its text: it cannot change, and has its own idea of equal. */
    static boolean isPlain(Object value) {
        return value instanceof String || value instanceof Number && isOfJdk(value) || value instanceof Boolean
                || value instanceof Character || value instanceof Enum || value instanceof Class
                || value instanceof java.util.Locale;
    }

    static boolean isOfJdk(Object value) {
        return value.getClass().getClassLoader() == null && !isAtomic(value);
    }

    private static boolean isAtomic(Object value) {
        return value.getClass().getName().startsWith("java.util.concurrent.atomic.");
    }

    static String text(Object value) {
        if (value == null) {
            return "null";
        }
        if (value instanceof Seen.Contents) {
            List<Object> elements = ((Seen.Contents) value).elements;
            StringBuilder text = new StringBuilder("[");
            for (int i = 0; i < Math.min(MOST, elements.size()); i++) {
                text.append(i == 0 ? "" : ", ").append(text(elements.get(i)));
            }
            return text.append(elements.size() > MOST ? ", … " + elements.size() + " in all]" : "]").toString();
        }
        if (value instanceof String) {
            return '"' + cut((String) value) + '"';
        }
        if (value instanceof Enum) {
            return ((Enum<?>) value).name();
        }
        if (value instanceof Disk.Entry) {
            return value.toString();
        }
        return isPlain(value) ? cut(value.toString()) : "a " + value.getClass().getName();
    }

    private static String cut(String text) {
        return text.length() <= LONGEST ? text : text.substring(0, LONGEST) + "…";
    }
}
