package unflake.junit;

import java.util.ArrayList;
import java.util.List;

/**
 * The pieces that a debugger is to watch in this JVM. It stops at {@code begin} and {@code end}, reads {@code spots}, asks
 * {@code hasChanged} and fills in the rest; without one nothing happens here.
 */
final class Watched {
    /** Places to stop at: number of the piece, how, class, member, object. */
    private static Object[][] spots = {};
    private static List<Seen> pieces = new ArrayList<>();
    /** Set by the debugger as soon as it watches. */
    private static volatile boolean isWatched;
    /** Set by the debugger at the end: for each piece that was written its number and the calls that led there. */
    private static volatile String found;

    private Watched() {
    }

    /** Lets pieces be watched; false if there is no debugger. */
    static boolean watch(List<Seen> all) {
        pieces = all;
        List<Object[]> listed = new ArrayList<>();
        for (int number = 0; number < all.size(); number++) {
            for (Object[] spot : all.get(number).spots()) {
                listed.add(new Object[] {String.valueOf(number), spot[0], spot[1], spot[2], spot[3]});
            }
        }
        spots = listed.toArray(new Object[0][]);
        begin();
        return isWatched;
    }

    /** The calls that led to the first write of each piece, the innermost first; null where none was seen. */
    static List<String[]> writers() {
        end();
        List<String[]> writers = new ArrayList<>();
        for (int number = 0; number < pieces.size(); number++) {
            writers.add(null);
        }
        for (String line : found == null ? new String[0] : found.split("\n")) {
            String[] words = line.split("\t");
            if (words.length > 1) {
                writers.set(Integer.parseInt(words[0]), words);
            }
        }
        return writers;
    }

    private static void begin() {
        // The debugger stops here.
    }

    private static void end() {
        // And here.
    }

    /** Called by the debugger. */
    static boolean hasChanged(int number) throws ReflectiveOperationException {
        return pieces.get(number).hasChanged();
    }
}
