package unflake.junit;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** The two pipes to the driver. Each line is a JSON object. */
final class Channel {
    private Runnable first = () -> { };
    private final OutputStream messages;
    private final BufferedReader commands;

    /** Opens both pipes, in the order that the protocol wants; opening waits for the driver. */
    Channel(File folder, int vm) throws IOException {
        messages = new FileOutputStream(new File(folder, vm + ".messages"));
        commands = new BufferedReader(new InputStreamReader(
                new FileInputStream(new File(folder, vm + ".commands")), StandardCharsets.UTF_8));
    }

    /** The next command; null when the driver is gone. */
    @SuppressWarnings("unchecked")
    Map<String, Object> next() {
        try {
            String line = commands.readLine();
            return line == null ? null : (Map<String, Object>) Json.read(line);
        } catch (IOException gone) {
            return null;
        }
    }

    /** Has something done before each message: what a run used is written down before anybody hears of the run. */
    void first(Runnable first) {
        this.first = first;
    }

    /** Says something; a driver that is gone ends the process. */
    synchronized void say(Object... keysAndValues) {
        first.run();
        byte[] line = (Json.write(Json.object(keysAndValues)) + "\n").getBytes(StandardCharsets.UTF_8);
        try {
            messages.write(line);
        } catch (IOException gone) {
            Runtime.getRuntime().halt(1);
        }
    }
}
