package unflake.debugger;

import com.sun.jdi.request.StepRequest;
import java.util.ArrayList;
import java.util.List;

/** A call that may change pieces, until it returns. */
final class Call {
    final List<Piece> pieces = new ArrayList<>();
    /** The calls that led to it. */
    final String stack;
    /** The number of those calls. */
    final int depth;
    final StepRequest out;

    Call(String stack, int depth, StepRequest out) {
        this.stack = stack;
        this.depth = depth;
        this.out = out;
    }
}
