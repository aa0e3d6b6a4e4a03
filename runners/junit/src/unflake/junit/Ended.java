package unflake.junit;

import java.util.Map;

/** How one run of a test ended. */
final class Ended {
    static final Ended PASSED = new Ended("passed", "", "");

    final String outcome;
    final String message;
    final String text;
    /** Whether the JVM had no memory left. */
    final boolean isOutOfMemory;

    private Ended(String outcome, String message, String text) {
        this(outcome, message, text, false);
    }

    private Ended(String outcome, String message, String text, boolean isOutOfMemory) {
        this.outcome = outcome;
        this.message = message;
        this.text = text;
        this.isOutOfMemory = isOutOfMemory;
    }

    static Ended failed(Throwable error) {
        return new Ended("failed", Texts.message(error), Texts.trace(error), isOutOfMemory(error));
    }

    private static boolean isOutOfMemory(Throwable error) {
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
        return new Ended("errored", Texts.message(error), Texts.trace(error));
    }

    static Ended skipped(String reason) {
        return new Ended("skipped", reason == null ? "" : reason.replaceAll("\\s*[\\r\\n]+\\s*", " "), "");
    }

    boolean isFailure() {
        return outcome.equals("failed") || outcome.equals("errored");
    }

    /** This one, and another part of the same test: the worse of the two counts. */
    Ended and(Ended other) {
        if (other == null || outcome.equals("failed")) {
            return this;
        }
        if (other.isFailure() || outcome.equals("skipped")) {
            return other;
        }
        return this;
    }

    /** The same, about one part of the test. */
    Ended of(String part) {
        return isFailure() ? new Ended(outcome, part + ": " + message, text, isOutOfMemory) : this;
    }

    Map<String, Object> toAttempt(double seconds, String output) {
        return Json.object("outcome", outcome, "seconds", seconds, "message", message, "text", text,
                "output", isFailure() ? output : "");
    }
}
