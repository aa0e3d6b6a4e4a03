package unflake.junit;

import java.io.InputStream;
import java.io.PrintStream;
import java.util.Locale;
import java.util.Properties;
import java.util.TimeZone;

/** The settings that a test can change for the whole JVM and that can be put back. */
final class JvmSettings {
    private final Properties properties = (Properties) System.getProperties().clone();
    private final Locale locale = Locale.getDefault();
    private final Locale display = Locale.getDefault(Locale.Category.DISPLAY);
    private final Locale format = Locale.getDefault(Locale.Category.FORMAT);
    private final TimeZone zone = TimeZone.getDefault();
    private final InputStream in = System.in;
    private final PrintStream out = System.out;
    private final PrintStream err = System.err;
    private final Thread.UncaughtExceptionHandler handler = Thread.getDefaultUncaughtExceptionHandler();

    private JvmSettings() {
    }

    /** The settings as they are now. */
    static JvmSettings now() {
        return new JvmSettings();
    }

    void putBack() {
        if (!properties.equals(System.getProperties())) {
            System.setProperties((Properties) properties.clone());
        }
        Locale.setDefault(locale);
        Locale.setDefault(Locale.Category.DISPLAY, display);
        Locale.setDefault(Locale.Category.FORMAT, format);
        TimeZone.setDefault(zone);
        System.setIn(in);
        System.setOut(out);
        System.setErr(err);
        Thread.setDefaultUncaughtExceptionHandler(handler);
    }
}
