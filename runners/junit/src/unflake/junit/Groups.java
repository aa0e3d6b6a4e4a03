package unflake.junit;

import java.util.ArrayList;
import java.util.List;

/** An expression over JUnit 4 categories as Surefire's `groups` has it: names, `,`, `||`, `&&`, `!`, `( )`. */
final class Groups {
    private final List<String> words = new ArrayList<>();
    private int at;

    Groups(String expression) {
        String spaced = expression.replace("||", " | ").replace("&&", " & ").replace(",", " | ")
                .replace("(", " ( ").replace(")", " ) ").replace("!", " ! ");
        for (String word : spaced.trim().split("\\s+")) {
            words.add(word.equalsIgnoreCase("or") ? "|" : word.equalsIgnoreCase("and") ? "&"
                    : word.equalsIgnoreCase("not") ? "!" : word);
        }
    }

    boolean match(List<Class<?>> categories) {
        at = 0;
        return either(categories);
    }

    private boolean either(List<Class<?>> categories) {
        boolean result = both(categories);
        while (is("|")) {
            at++;
            result |= both(categories);
        }
        return result;
    }

    private boolean both(List<Class<?>> categories) {
        boolean result = one(categories);
        while (is("&")) {
            at++;
            result &= one(categories);
        }
        return result;
    }

    private boolean one(List<Class<?>> categories) {
        if (at >= words.size()) {
            return false;
        }
        String word = words.get(at++);
        if (word.equals("!")) {
            return !one(categories);
        }
        if (word.equals("(")) {
            boolean inside = either(categories);
            at++;
            return inside;
        }
        for (Class<?> category : categories) {
            if (isKindOf(category, word)) {
                return true;
            }
        }
        return false;
    }

    private boolean is(String word) {
        return at < words.size() && words.get(at).equals(word);
    }

    private static boolean isKindOf(Class<?> type, String name) {
        if (type == null) {
            return false;
        }
        if (type.getName().equals(name) || type.getName().endsWith("." + name) || type.getSimpleName().equals(name)) {
            return true;
        }
        for (Class<?> parent : type.getInterfaces()) {
            if (isKindOf(parent, name)) {
                return true;
            }
        }
        return isKindOf(type.getSuperclass(), name);
    }
}
