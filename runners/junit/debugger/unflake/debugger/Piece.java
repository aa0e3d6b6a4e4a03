package unflake.debugger;

import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.EventRequest;
import java.util.ArrayList;
import java.util.List;

/** A piece of state that is watched. */
final class Piece {
    /** The most times that a piece is compared with what it was. */
    private static final int MOST_CHECKS = 400;

    final int number;
    final List<EventRequest> requests = new ArrayList<>();
    /** Whether it is not watched any more: its writer is known, or was missed. */
    boolean isLeft;
    /** The calls that led to the first change; null while it is not known. */
    String writer;
    private int checks;

    Piece(int number) {
        this.number = number;
    }

    void leave() {
        isLeft = true;
        enable(false);
    }

    /** Whether its methods are called too often to look each time; from then on only its fields are watched. */
    boolean isTired() {
        checks++;
        if (checks > MOST_CHECKS) {
            requests.stream().filter(BreakpointRequest.class::isInstance).forEach(EventRequest::disable);
            requests.removeIf(BreakpointRequest.class::isInstance);
        }
        return checks > MOST_CHECKS;
    }

    void enable(boolean isEnabled) {
        for (EventRequest request : requests) {
            request.setEnabled(isEnabled && !isLeft);
        }
    }
}
