package unflake.debugger;

import com.sun.jdi.ArrayReference;
import com.sun.jdi.ClassObjectReference;
import com.sun.jdi.ClassType;
import com.sun.jdi.Field;
import com.sun.jdi.Method;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StringReference;
import com.sun.jdi.Value;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.ModificationWatchpointRequest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The places at which to stop, as the runner wrote them into {@code Watched.spots}. */
final class Spots {
    /** The property of a request that holds the number of its piece. */
    static final String PIECE = "piece";

    /** Methods of the JDK's containers that change nothing, and are called often. */
    private static final Set<String> READERS = new HashSet<>(Arrays.asList("get", "getOrDefault", "getProperty",
            "getPlain", "getAcquire", "getOpaque", "size", "isEmpty", "contains", "containsKey", "containsValue",
            "containsAll", "indexOf", "lastIndexOf", "iterator", "listIterator", "spliterator", "stream", "forEach",
            "entrySet", "keySet", "values", "keys", "elements", "stringPropertyNames", "propertyNames", "toArray",
            "hashCode", "equals", "toString", "clone", "peek", "element", "getFirst", "getLast", "first", "last",
            "intValue", "longValue", "doubleValue", "floatValue", "length", "charAt", "substring", "capacity",
            "getNode", "getEntry", "elementData", "comparator", "newNode", "hash", "getMap"));

    private final VirtualMachine machine;
    private final ClassType watched;
    private final List<EventRequest> requests = new ArrayList<>();

    Spots(VirtualMachine machine, ClassType watched) {
        this.machine = machine;
        this.watched = watched;
    }

    /** A request for each place, not yet enabled. */
    List<EventRequest> requests() {
        ArrayReference all = (ArrayReference) watched.getValue(watched.fieldByName("spots"));
        for (Value one : all.getValues()) {
            add(((ArrayReference) one).getValues());
        }
        return requests;
    }

    /** A spot: number of its piece, how it is watched, class, name of a member, object; the last may be null. */
    private void add(List<Value> spot) {
        int number = Integer.parseInt(text(spot.get(0)));
        ReferenceType type = ((ClassObjectReference) spot.get(2)).reflectedType();
        ObjectReference holder = (ObjectReference) spot.get(4);
        switch (text(spot.get(1))) {
            case "field":
                addField(number, type.fieldByName(text(spot.get(3))), holder);
                break;
            case "method":
                for (Method method : type.methodsByName(text(spot.get(3)))) {
                    addMethod(number, method, holder);
                }
                break;
            default:
                addChangers(number, type, holder);
        }
    }

    private static String text(Value value) {
        return ((StringReference) value).value();
    }

    /** All methods of a container's class that may change it. */
    private void addChangers(int number, ReferenceType type, ObjectReference holder) {
        for (ClassType own = (ClassType) type; own.superclass() != null; own = own.superclass()) {
            for (Method method : own.methods()) {
                if (!method.isStatic() && !method.isConstructor() && !READERS.contains(method.name())) {
                    addMethod(number, method, holder);
                }
            }
        }
    }

    private void addField(int number, Field field, ObjectReference holder) {
        if (field == null || !machine.canWatchFieldModification()) {
            return;
        }
        ModificationWatchpointRequest request = machine.eventRequestManager().createModificationWatchpointRequest(field);
        if (holder != null) {
            request.addInstanceFilter(holder);
        }
        keep(number, request);
    }

    private void addMethod(int number, Method method, ObjectReference holder) {
        if (method.isAbstract() || method.isNative() || method.location() == null) {
            return;
        }
        BreakpointRequest request = machine.eventRequestManager().createBreakpointRequest(method.location());
        if (holder != null) {
            request.addInstanceFilter(holder);
        }
        keep(number, request);
    }

    private void keep(int number, EventRequest request) {
        request.putProperty(PIECE, number);
        request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        requests.add(request);
    }
}
