package unflake.junit;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UnsupportedEncodingException;
import java.nio.charset.Charset;

/**
 * The standard output and error of tests since the last question: its beginning and its end.
 *
 * <p>Surefire stands in for both streams too. All is written on, so that the driver has it when the VM dies.
 */
final class Output extends OutputStream {
    private static final int HALF = 32768;

    private final OutputStream through;
    private final byte[] head = new byte[HALF];
    private final byte[] tail = new byte[HALF];
    private long count;

    private Output(OutputStream through) {
        this.through = through;
    }

    /** Takes the place of both streams. */
    static Output[] install() {
        Output out = new Output(System.out);
        Output err = new Output(System.err);
        System.setOut(stream(out));
        System.setErr(stream(err));
        return new Output[] {out, err};
    }

    private static PrintStream stream(Output output) {
        try {
            return new PrintStream(output, true, Charset.defaultCharset().name());
        } catch (UnsupportedEncodingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public synchronized void write(int one) throws IOException {
        write(new byte[] {(byte) one}, 0, 1);
    }

    @Override
    public synchronized void write(byte[] bytes, int start, int length) throws IOException {
        for (int i = start; i < start + length; i++) {
            if (count < HALF) {
                head[(int) count] = bytes[i];
            } else {
                tail[(int) (count % HALF)] = bytes[i];
            }
            count++;
        }
        through.write(bytes, start, length);
    }

    @Override
    public void flush() throws IOException {
        through.flush();
    }

    /** The output since the last call. */
    synchronized String take() {
        Charset charset = Charset.defaultCharset();
        String text = new String(head, 0, (int) Math.min(count, HALF), charset);
        if (count > 2L * HALF) {
            int start = (int) (count % HALF);
            byte[] last = new byte[HALF];
            System.arraycopy(tail, start, last, 0, HALF - start);
            System.arraycopy(tail, 0, last, HALF - start, start);
            text += "\n[… " + (count - 2L * HALF) + " characters left out …]\n" + new String(last, charset);
        } else if (count > HALF) {
            text += new String(tail, 0, (int) (count - HALF), charset);
        }
        count = 0;
        return text;
    }
}
