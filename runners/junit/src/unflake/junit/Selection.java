package unflake.junit;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/** The tests of the classes that are wanted: Surefire's `-Dtest=Class#method` and groups. */
final class Selection {
    private final List<String> patterns = new ArrayList<>();
    private final String groups;
    private final String excludedGroups;

    Selection(String requested, String groups, String excludedGroups) {
        for (String one : requested == null ? new String[0] : requested.split(",")) {
            if (one.contains("#") && !one.trim().isEmpty()) {
                patterns.add(one.trim());
            }
        }
        this.groups = groups == null ? "" : groups;
        this.excludedGroups = excludedGroups == null ? "" : excludedGroups;
    }

    /** Whether a method is wanted; only patterns that name methods are looked at, the others chose classes. */
    boolean isWanted(String className, String method) {
        boolean isNamed = false;
        for (String pattern : patterns) {
            int hash = pattern.indexOf('#');
            if (!matchesClass(pattern.substring(0, hash), className)) {
                continue;
            }
            isNamed = true;
            for (String one : pattern.substring(hash + 1).split("\\+")) {
                String plain = method.replaceAll("[(\\[{].*", "");
                if (matches(one, method) || matches(one, plain)) {
                    return true;
                }
            }
        }
        return !isNamed;
    }

    private static boolean matchesClass(String pattern, String className) {
        String wanted = pattern.replace('/', '.').replaceAll("\\.(class|java)$", "");
        if (wanted.isEmpty()) {
            return true;
        }
        String simple = className.substring(className.lastIndexOf('.') + 1);
        return matches(wanted, className) || matches(wanted, simple)
                || matches(wanted.replaceFirst("^\\*\\*\\.?", ""), simple);
    }

    private static boolean matches(String glob, String text) {
        String pattern = Pattern.quote(glob).replace("**", "\\E.*\\Q").replace("*", "\\E.*\\Q")
                .replace("?", "\\E.\\Q");
        return text.matches(pattern);
    }

    boolean hasGroups() {
        return !groups.isEmpty() || !excludedGroups.isEmpty();
    }

    boolean isInGroups(List<Class<?>> categories) {
        return (groups.isEmpty() || new Groups(groups).match(categories))
                && (excludedGroups.isEmpty() || !new Groups(excludedGroups).match(categories));
    }
}
