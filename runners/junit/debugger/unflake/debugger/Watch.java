package unflake.debugger;

import com.sun.jdi.BooleanValue;
import com.sun.jdi.ClassNotLoadedException;
import com.sun.jdi.ClassType;
import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.InvalidTypeException;
import com.sun.jdi.InvocationException;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.StringReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.VMDisconnectedException;
import com.sun.jdi.Value;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.ModificationWatchpointEvent;
import com.sun.jdi.event.StepEvent;
import com.sun.jdi.event.VMDeathEvent;
import com.sun.jdi.event.VMDisconnectEvent;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.ClassPrepareRequest;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.StepRequest;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;

/**
 * Watches pieces of state in a JVM, from {@code Watched.begin} to {@code Watched.end} of the runner in there.
 *
 * <p>A field is seen being written. Of something else the methods are known that may change it: the piece must be
 * as it was when one is called, and different when that has returned. What changes in another way is not claimed.
 */
final class Watch {
    private static final String WATCHED = "unflake.junit.Watched";

    private final VirtualMachine machine;
    private final Map<Integer, Piece> pieces = new HashMap<>();
    /** The calls that have not returned yet, by their threads. */
    private final Map<ThreadReference, Call> calls = new HashMap<>();
    private ClassType watched;

    Watch(VirtualMachine machine) {
        this.machine = machine;
    }

    /** Goes on until the runner has its answer, or the JVM is gone. */
    void run() {
        ClassPrepareRequest prepare = machine.eventRequestManager().createClassPrepareRequest();
        prepare.addClassFilter(WATCHED);
        prepare.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        prepare.enable();
        try {
            boolean goesOn = true;
            while (goesOn) {
                EventSet events = machine.eventQueue().remove();
                for (Event event : events) {
                    goesOn &= take(event);
                }
                events.resume();
            }
            machine.dispose();
        } catch (VMDisconnectedException gone) {
            // Then nobody waits for an answer.
            return;
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    /** Takes an event; false if it is the last. */
    private boolean take(Event event) {
        if (event instanceof VMDeathEvent || event instanceof VMDisconnectEvent) {
            return false;
        }
        if (event instanceof ClassPrepareEvent) {
            watched = (ClassType) ((ClassPrepareEvent) event).referenceType();
            for (String method : new String[] {"begin", "end"}) {
                BreakpointRequest stop = machine.eventRequestManager()
                        .createBreakpointRequest(watched.methodsByName(method).get(0).location());
                stop.putProperty(Spots.PIECE, method);
                stop.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
                stop.enable();
            }
        } else if (event instanceof ModificationWatchpointEvent) {
            written((ModificationWatchpointEvent) event);
        } else if (event instanceof StepEvent) {
            returned(((StepEvent) event).thread());
        } else if (event instanceof BreakpointEvent) {
            Object what = event.request().getProperty(Spots.PIECE);
            if (what.equals("begin")) {
                begin();
            } else if (what.equals("end")) {
                tell();
                return false;
            } else {
                called((BreakpointEvent) event, pieces.get(what));
            }
        }
        return true;
    }

    private void begin() {
        for (EventRequest request : new Spots(machine, watched).requests()) {
            Integer number = (Integer) request.getProperty(Spots.PIECE);
            Piece piece = pieces.computeIfAbsent(number, Piece::new);
            piece.requests.add(request);
            request.enable();
        }
        set("isWatched", machine.mirrorOf(true));
    }

    private void written(ModificationWatchpointEvent event) {
        Piece piece = pieces.get(event.request().getProperty(Spots.PIECE));
        if (!isSame(event.valueCurrent(), event.valueToBe())) {
            piece.writer = stack(event.thread());
            piece.leave();
        }
    }

    private static boolean isSame(Value before, Value after) {
        if (before instanceof StringReference && after instanceof StringReference) {
            return ((StringReference) before).value().equals(((StringReference) after).value());
        }
        return before == null ? after == null : before.equals(after);
    }

    /** A method is called that may change a piece. */
    private void called(BreakpointEvent event, Piece piece) {
        ThreadReference thread = event.thread();
        Call call = calls.get(thread);
        int depth = depth(thread);
        if (piece.isLeft || call != null && call.depth != depth || piece.isTired()) {
            // Of calls within calls the outermost counts.
            return;
        }
        String stack = stack(thread);
        if (hasChanged(piece, thread)) {
            // It was changed by something that is not watched.
            piece.leave();
            return;
        }
        if (call == null) {
            StepRequest out = machine.eventRequestManager()
                    .createStepRequest(thread, StepRequest.STEP_MIN, StepRequest.STEP_OUT);
            out.addCountFilter(1);
            out.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
            out.enable();
            call = new Call(stack, depth, out);
            calls.put(thread, call);
        }
        call.pieces.add(piece);
    }

    private void returned(ThreadReference thread) {
        Call call = calls.remove(thread);
        if (call == null) {
            return;
        }
        machine.eventRequestManager().deleteEventRequest(call.out);
        for (Piece piece : call.pieces) {
            if (!piece.isLeft && hasChanged(piece, thread)) {
                piece.writer = call.stack;
                piece.leave();
            }
        }
    }

    private static int depth(ThreadReference thread) {
        try {
            return thread.frameCount();
        } catch (IncompatibleThreadStateException running) {
            throw new IllegalStateException(running);
        }
    }

    /** Asks the runner whether a piece is as it was, in a thread that stands still. */
    private boolean hasChanged(Piece piece, ThreadReference thread) {
        for (Piece one : pieces.values()) {
            one.enable(false);
        }
        try {
            Value changed = watched.invokeMethod(thread, watched.methodsByName("hasChanged").get(0),
                    Collections.singletonList(machine.mirrorOf(piece.number)), ObjectReference.INVOKE_SINGLE_THREADED);
            return ((BooleanValue) changed).value();
        } catch (InvocationException | InvalidTypeException | ClassNotLoadedException
                | IncompatibleThreadStateException unknown) {
            piece.leave();
            return false;
        } finally {
            for (Piece one : pieces.values()) {
                one.enable(true);
            }
        }
    }

    /** The calls that led to where a thread is, the innermost first. */
    private static String stack(ThreadReference thread) {
        StringBuilder text = new StringBuilder();
        try {
            thread.frames().forEach(frame -> text.append('\t').append(frame.location().declaringType().name())
                    .append(' ').append(frame.location().method().name())
                    .append(' ').append(frame.location().lineNumber()));
        } catch (IncompatibleThreadStateException running) {
            throw new IllegalStateException(running);
        }
        return text.toString();
    }

    /** Gives the runner a line for each piece that was seen being written. */
    private void tell() {
        StringBuilder text = new StringBuilder();
        for (Piece piece : pieces.values()) {
            piece.leave();
            if (piece.writer != null) {
                text.append(piece.number).append(piece.writer).append('\n');
            }
        }
        StringReference told = machine.mirrorOf(text.toString());
        told.disableCollection();
        set("found", told);
        told.enableCollection();
    }

    private void set(String field, Value value) {
        try {
            watched.setValue(watched.fieldByName(field), value);
        } catch (InvalidTypeException | ClassNotLoadedException other) {
            throw new IllegalStateException(other);
        }
    }
}
