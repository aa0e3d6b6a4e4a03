package unflake.junit;

import java.util.Map;

/** How one run of a test ended. */
final class Ended {
    static final Ended PASSED = new Ended("passed", "", "", null);

    final String outcome;
    final String message;
    final String text;
    /** What was thrown; null if nothing was. */
    final Throwable error;

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
        return isFailure() ? new Ended(outcome, part + ": " + message, text, error) : this;
    }

    Map<String, Object> toAttempt(double seconds, String output, Failures failures) {
        return Json.object("outcome", outcome, "seconds", seconds, "message", message, "text", text,
                "output", isFailure() ? output : "", "kind", failures.kind(error), "frames", failures.frames(error));
    }
}
