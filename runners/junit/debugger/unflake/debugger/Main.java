package unflake.debugger;

import com.sun.jdi.Bootstrap;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.IllegalConnectorArgumentsException;
import com.sun.jdi.connect.ListeningConnector;
import java.io.IOException;
import java.util.Map;

/**
 * A debugger for one JVM, in a process of its own: says where it listens, waits for the JVM, and tells it which
 * lines write what the runner in there names.
 */
public final class Main {
    /** The time in milliseconds that the JVM may take to connect. */
    private static final String PATIENCE = "60000";

    private Main() {
    }

    public static void main(String[] none) throws IOException, IllegalConnectorArgumentsException {
        for (ListeningConnector connector : Bootstrap.virtualMachineManager().listeningConnectors()) {
            if (connector.name().equals("com.sun.jdi.SocketListen")) {
                new Watch(accept(connector)).run();
            }
        }
    }

    private static VirtualMachine accept(ListeningConnector connector)
            throws IOException, IllegalConnectorArgumentsException {
        Map<String, Connector.Argument> arguments = connector.defaultArguments();
        arguments.get("localAddress").setValue("127.0.0.1");
        arguments.get("timeout").setValue(PATIENCE);
        String address = connector.startListening(arguments);
        System.out.println("127.0.0.1:" + address.substring(address.lastIndexOf(':') + 1));
        // Whoever started us waits for the end of it.
        System.out.close();
        VirtualMachine machine = connector.accept(arguments);
        connector.stopListening(arguments);
        return machine;
    }
}
