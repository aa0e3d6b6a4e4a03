package unflake.junit;

import java.util.ArrayList;
import java.util.Calendar;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;

/** Surefire's `runOrder`: its providers sort the classes inside the JVM. */
final class RunOrder {
    private RunOrder() {
    }

    /** The classes in the order in which Surefire runs them. One by earlier runs is left as the plugin found them. */
    static List<String> sort(List<String> classes, Map<String, Object> settings) {
        List<String> sorted = new ArrayList<>(classes);
        Object seed = settings.get("runOrderRandomSeed");
        for (String order : String.valueOf(settings.get("runOrder")).toLowerCase(Locale.ROOT).split(",")) {
            switch (order.trim()) {
                case "alphabetical":
                    Collections.sort(sorted);
                    break;
                case "reversealphabetical":
                    sorted.sort(Collections.reverseOrder());
                    break;
                case "hourly":
                    boolean isEven = Calendar.getInstance().get(Calendar.HOUR_OF_DAY) % 2 == 0;
                    sorted.sort(isEven ? null : Collections.reverseOrder());
                    break;
                case "random":
                    if (seed != null) {
                        Collections.shuffle(sorted, new Random(Long.parseLong(seed.toString())));
                    }
                    break;
                default:
                    break;
            }
        }
        return sorted;
    }
}
