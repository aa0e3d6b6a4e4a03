package unflake.junit;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The end of one run of a test. */
final class Ended {
    static final Ended PASSED = new Ended("passed", "", "", null);

    final String outcome;
    final String message;
    final String text;
    /** The throwable; null if nothing was thrown. */
    final Throwable error;
    /** The parts that failed, each as number and name. */
    private final List<Object> parts = new ArrayList<>();

    private Ended(String outcome, String message, String text, Throwable error) {
        this.outcome = outcome;
        this.message = message;
        this.text = text;
        this.error = error;
    }

    static Ended failed(Throwable error) {
        return new Ended("failed", Texts.message(error), Texts.trace(error), error);
    }

    /** Whether the JVM had no memory left. */
    boolean isOutOfMemory() {
        Throwable cause = error;
        // Causes can go round in a circle.
        for (int depth = 0; depth < 20 && cause != null; depth++) {
            if (cause instanceof OutOfMemoryError) {
                return true;
            }
            cause = cause.getCause();
        }
        return false;
    }

    /** Only its set-up or tear-down, which it shares with others, failed. */
    static Ended errored(Throwable error) {
        return new Ended("errored", Texts.message(error), Texts.trace(error), error);
    }

    static Ended skipped(String reason) {
        return new Ended("skipped", reason == null ? "" : reason.replaceAll("\\s*[\\r\\n]+\\s*", " "), "", null);
    }

    boolean isFailure() {
        return outcome.equals("failed") || outcome.equals("errored");
    }

    /** This one, and another part of the same test: the worse of the two counts, and all that failed are told. */
    Ended and(Ended other) {
        if (other == null) {
            return this;
        }
        boolean isOther = !outcome.equals("failed") && (other.isFailure() || outcome.equals("skipped"));
        Ended worse = isOther ? other : this;
        if (parts.isEmpty() && other.parts.isEmpty()) {
            return worse;
        }
        Ended both = new Ended(worse.outcome, worse.message, worse.text, worse.error);
        both.parts.addAll(parts);
        both.parts.addAll(other.parts);
        return both;
    }

    /** This end, told of one part of the test. */
    Ended of(String number, String name) {
        if (!isFailure()) {
            return this;
        }
        Ended part = new Ended(outcome, name + ": " + message, text, error);
        List<Object> words = new ArrayList<>();
        words.add(number);
        // An object without a text of its own shows its address.
        words.add(name.replaceAll("@[0-9a-f]{1,8}\\b", "@"));
        part.parts.add(words);
        return part;
    }

    Map<String, Object> toAttempt(double seconds, String output, Failures failures) {
        return Json.object("outcome", outcome, "seconds", seconds, "message", message, "text", text,
                "output", isFailure() ? output : "", "kind", failures.kind(error), "frames", failures.frames(error),
                "parts", isFailure() ? parts : new ArrayList<>());
    }
}
