package unflake.junit;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The classes that are in use, so that their static fields have values. Asking initialises none.
 *
 * <p>A JVM that was started for it writes each class into a log as it initialises it. A JDK up to 21 can be asked
 * as well, which tells apart classes of one name.
 */
final class InUse {
    /** For example {@code 284 Initializing 'shop/Cart$Item' (0x00007f2e60000a08)}. */
    private static final Pattern LINE = Pattern.compile("^\\d+ Initializing '([^']+)'");

    private final File log;
    private final Memory memory;
    private final Set<String> logged = new HashSet<>();

    /** `memory` may be null. */
    InUse(File log, Memory memory) {
        this.log = log;
        this.memory = memory;
    }

    /** Looks anew; false if this JVM does not tell. */
    boolean refresh() {
        logged.clear();
        if (log.isFile()) {
            try (BufferedReader lines = Files.newBufferedReader(log.toPath(), StandardCharsets.UTF_8)) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    Matcher matcher = LINE.matcher(line);
                    if (matcher.find()) {
                        logged.add(matcher.group(1).replace('/', '.'));
                    }
                }
            } catch (IOException unreadable) {
                logged.clear();
            }
        }
        // This class is in use: a log without it is not what we take it for.
        return isLogged() || memory != null && memory.knowsPending();
    }

    private boolean isLogged() {
        return logged.contains(InUse.class.getName());
    }

    /** Whether a class is in use, by the last look. */
    boolean has(Class<?> type) {
        if (isLogged() && !logged.contains(type.getName())) {
            return false;
        }
        return memory == null || !memory.knowsPending() || memory.isInitialised(type);
    }
}
