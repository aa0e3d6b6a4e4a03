package unflake.junit;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Tests of one class that run together, and what is said about them.
 *
 * <p>A framework cannot stop in the middle of a class, so that failures inside are told at once and the
 * runner holds at its end. The last test is told when the class is torn down, which may fail as well.
 */
final class Run implements Backend.Watcher {
    private final Channel channel;
    private final Output[] outputs;
    private final Failures failures;
    private final boolean isLast;
    private final boolean holdsAfterFailure;
    private final Map<Listed, Boolean> open = new LinkedHashMap<>();
    private Listed waiting;
    private Map<String, Object> waitingAttempt;
    private boolean hasFailed;
    private boolean isOutOfMemory;
    private Throwable groupError;
    private long started = System.nanoTime();

    Run(Channel channel, Output[] outputs, Failures failures, List<Listed> tests, boolean isLast,
            boolean holdsAfterFailure) {
        this.channel = channel;
        this.outputs = outputs;
        this.failures = failures;
        this.isLast = isLast;
        this.holdsAfterFailure = holdsAfterFailure;
        for (Listed test : tests) {
            open.put(test, false);
        }
    }

    @Override
    public void started(Listed test) {
        // From here on the driver must know which test runs. The set-up of the class belongs to its first.
        if (waiting != null) {
            flush();
            started = System.nanoTime();
        }
    }

    @Override
    public void ended(Listed test, Ended how) {
        if (open.remove(test) == null) {
            return;
        }
        flush();
        hasFailed |= how.isFailure();
        isOutOfMemory |= how.isOutOfMemory();
        waiting = test;
        waitingAttempt = how.toAttempt((System.nanoTime() - started) / 1e9, takeOutput(), failures);
        started = System.nanoTime();
    }

    /** Whether a test failed because the JVM had no memory left. */
    boolean isOutOfMemory() {
        return isOutOfMemory;
    }

    @Override
    public void groupFailed(Throwable error) {
        if (groupError == null) {
            groupError = error;
        }
    }

    /** Tells the one that waits, and goes on. */
    private void flush() {
        if (waiting != null) {
            say(waiting, waitingAttempt, "plain", false);
            waiting = null;
        }
    }

    /** Tells what is left when the class is over; whether the runner now waits for a command. */
    boolean finish(String fixtures) {
        if (groupError != null && open.isEmpty() && waiting != null
                && !"failed".equals(waitingAttempt.get("outcome"))) {
            // Only the tear-down of the class is left to have failed.
            hasFailed = true;
            Map<String, Object> attempt = Ended.errored(groupError)
                    .toAttempt((Double) waitingAttempt.get("seconds"), takeOutput(), failures);
            boolean isHeld = isLast || holdsAfterFailure;
            say(waiting, attempt, fixtures.equals("plain") ? "ended-badly" : fixtures, isHeld);
            return isHeld;
        }
        List<Listed> rest = new ArrayList<>(open.keySet());
        hasFailed |= !rest.isEmpty();
        boolean isHeld = isLast || holdsAfterFailure && hasFailed;
        if (waiting != null) {
            say(waiting, waitingAttempt, fixtures, isHeld && rest.isEmpty());
        }
        double seconds = (System.nanoTime() - started) / 1e9;
        for (int i = 0; i < rest.size(); i++) {
            // Nothing ran; with a reason if the class as a whole has one.
            Map<String, Object> attempt = groupError == null ? null
                    : Ended.errored(groupError).toAttempt(seconds, takeOutput(), failures);
            say(rest.get(i), attempt, fixtures, isHeld && i + 1 == rest.size());
        }
        return isHeld;
    }

    private void say(Listed test, Map<String, Object> attempt, String fixtures, boolean isHeld) {
        List<Object> attempts = new ArrayList<>();
        if (attempt != null) {
            attempts.add(attempt);
        }
        channel.say("say", "ran", "test", test.id, "copy", test.copy, "attempts", attempts, "fixtures", fixtures,
                "held", isHeld, "stop", null);
    }

    private String takeOutput() {
        String out = outputs[0].take();
        String err = outputs[1].take();
        String text = out.isEmpty() ? "" : "--- standard output ---\n" + out;
        return err.isEmpty() ? text : text + (text.isEmpty() ? "" : "\n") + "--- standard error ---\n" + err;
    }
}
