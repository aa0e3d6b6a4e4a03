package unflake.junit;

import java.io.PrintWriter;
import java.io.StringWriter;

/** Texts about failures, as long as the protocol lets them be. */
final class Texts {
    private static final int LONGEST_TEXT = 65536;
    private static final int LONGEST_MESSAGE = 2000;

    private Texts() {
    }

    /** The error, in a line. */
    static String message(Throwable error) {
        String text;
        try {
            text = error.toString();
        } catch (Throwable own) {
            // The project's own exception cannot even say what it is.
            text = error.getClass().getName();
        }
        String line = text.trim().replaceAll("\\s*[\\r\\n]+\\s*", " ");
        return line.length() <= LONGEST_MESSAGE ? line : line.substring(0, LONGEST_MESSAGE - 1) + "…";
    }

    /** The stack trace, without what is below the test. */
    static String trace(Throwable error) {
        StringWriter text = new StringWriter();
        try {
            error.printStackTrace(new PrintWriter(text, true));
        } catch (Throwable own) {
            return message(error);
        }
        return cut(withoutFramework(text.toString()));
    }

    /** A text whose middle is left out if it is too long. */
    static String cut(String text) {
        if (text.length() <= LONGEST_TEXT) {
            return text;
        }
        int half = LONGEST_TEXT / 2;
        int left = text.length() - LONGEST_TEXT;
        return text.substring(0, half) + "\n[… " + left + " characters left out …]\n"
                + text.substring(text.length() - half);
    }

    private static String withoutFramework(String trace) {
        StringBuilder shown = new StringBuilder();
        boolean isBelow = false;
        for (String line : trace.split("\n")) {
            boolean isFrame = line.startsWith("\tat ");
            isBelow = isFrame && (isBelow || isOfFramework(line.substring(4)));
            if (!isBelow) {
                shown.append(line).append('\n');
            }
        }
        return shown.toString();
    }

    /** Whether a frame, and so all below it, belongs to what calls tests. */
    static boolean isOfFramework(String frame) {
        // A frame may begin with its class loader and module.
        String plain = frame.substring(frame.substring(0, Math.max(0, frame.indexOf('('))).lastIndexOf('/') + 1);
        return plain.startsWith("jdk.internal.reflect.") || plain.startsWith("sun.reflect.")
                || plain.startsWith("java.lang.reflect.Method.invoke")
                || plain.startsWith("java.lang.reflect.Constructor.newInstance")
                || plain.startsWith("org.junit.runners.") || plain.startsWith("org.junit.internal.runners.")
                || plain.startsWith("org.junit.platform.commons.util.ReflectionUtils.")
                || plain.startsWith("junit.framework.TestCase.run") || plain.startsWith("unflake.junit.");
    }
}
