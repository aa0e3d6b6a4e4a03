package unflake.junit;

import java.util.ArrayList;
import java.util.List;

/** The lines of the project that write pieces of state while tests run, as a debugger sees them. */
final class Writers {
    private static final String NO_DEBUGGER = "no debugger watches the JVM: that takes a JDK with the modules jdk.jdi "
            + "and jdk.jdwp.agent";

    private final Channel channel;
    private final Sources sources;

    Writers(Channel channel, Sources sources) {
        this.channel = channel;
        this.sources = sources;
    }

    /** Runs tests, and says where the pieces with these keys were written first. */
    void locate(State state, List<?> keys, Runnable tests) {
        List<Seen> pieces = new ArrayList<>();
        List<Object> known = new ArrayList<>();
        for (Object key : keys) {
            Seen piece = state.piece(String.valueOf(key));
            if (piece != null) {
                known.add(key);
                pieces.add(piece);
            }
        }
        boolean isWatched = Watched.watch(pieces);
        tests.run();
        List<Object> places = new ArrayList<>();
        List<String[]> writers = Watched.writers();
        for (int i = 0; i < writers.size(); i++) {
            places.add(place(known.get(i), writers.get(i)));
        }
        channel.say("say", "located", "places", places, "why", isWatched ? null : NO_DEBUGGER);
    }

    /** The innermost call in code of the project. */
    private Object place(Object key, String[] calls) {
        for (int i = 1; calls != null && i < calls.length; i++) {
            String[] words = calls[i].split(" ");
            int line = Integer.parseInt(words[2]);
            String file = line > 0 ? sources.path(words[0]) : null;
            if (file != null) {
                return Json.object("key", key, "file", file, "line", line, "function", plain(words[1]));
            }
        }
        return Json.object("key", key, "file", null, "line", null, "function", null);
    }

    /** A method as it is written: the body of a lambda belongs to the method around it. */
    private static String plain(String method) {
        return method.startsWith("lambda$") ? method.split("\\$")[1] : method;
    }
}
