import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.DataStructure;
import org.apache.activemq.command.NetworkBridgeFilter;
import org.apache.activemq.command.SessionInfo;
import org.apache.activemq.command.WireFormatInfo;
import org.apache.activemq.filter.BooleanExpression;
import org.apache.activemq.openwire.DataStreamMarshaller;
import org.apache.activemq.openwire.OpenWireFormat;
import org.apache.activemq.util.ByteSequence;
import org.apache.activemq.util.MarshallingSupport;

/**
 * Encodes and decodes OpenWire with the classes of ActiveMQ's client, for a test that compares.
 *
 * Reads requests from its input, and answers each: a byte for what to do, then version, tight, cached and stack traces
 * as one byte each.
 *
 * 'r' SEED COUNT: answers COUNT frames for each type, random by the seed: their number, then each with its length.
 * 'm' N and N frames with their lengths: decodes each and answers it encoded again, with its length; the length -1 and
 *     a text for one that cannot be decoded.
 *
 * 'v' SEED COUNT: answers COUNT encoded maps of typed values, random by the seed, each with its length.
 *
 * Frames of one request are encoded and decoded in their order by one OpenWireFormat, so that its caches have a past.
 */
public class OpenWireCommands {
    static final String LETTERS = "aZ09 .:-/\0\u007f\u0080\u00df\u07ff\u0800\u20ac\uffff";
    static final int DEPTH = 3;

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new java.io.BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new java.io.BufferedOutputStream(System.out));
        int what;
        while ((what = in.read()) >= 0) {
            byte version = in.readByte();
            boolean tight = in.readBoolean(), cached = in.readBoolean(), stackTraces = in.readBoolean();
            OpenWireFormat format = format(version, tight, cached, stackTraces);
            if (what == 'r') {
                random(format, in.readLong(), in.readInt(), out);
            } else if (what == 'v') {
                values(new Random(in.readLong()), in.readInt(), out);
            } else {
                again(format, format(version, tight, cached, stackTraces), in, out);
            }
            out.flush();
        }
    }

    static OpenWireFormat format(int version, boolean tight, boolean cached, boolean stackTraces) throws IOException {
        OpenWireFormat format = new OpenWireFormat();
        format.setVersion(version);
        format.setStackTraceEnabled(stackTraces);
        format.setTightEncodingEnabled(tight);
        format.setCacheEnabled(cached);
        return format;
    }

    /** Decodes and encodes again with two formats, as the two directions of a connection have their own caches. */
    static void again(OpenWireFormat reading, OpenWireFormat writing, DataInputStream in, DataOutputStream out)
            throws IOException {
        for (int count = in.readInt(); count > 0; count--) {
            byte[] frame = new byte[in.readInt()];
            in.readFully(frame);
            try {
                write(writing.marshal(reading.unmarshal(new ByteSequence(frame))), out);
            } catch (Throwable error) {
                out.writeInt(-1);
                out.writeUTF(error.toString());
            }
        }
    }

    static void write(ByteSequence frame, DataOutputStream out) throws IOException {
        out.writeInt(frame.length);
        out.write(frame.data, frame.offset, frame.length);
    }

    static void random(OpenWireFormat format, long seed, int count, DataOutputStream out) throws Exception {
        List<ByteSequence> frames = new ArrayList<>();
        Filler filler = new Filler(new Random(seed), format.getVersion(), format.isCacheEnabled());
        for (int round = 0; round < count; round++) {
            for (Class<?> type : filler.types) {
                ByteSequence frame = format.marshal(filler.fill(type, DEPTH));
                frames.add(new ByteSequence(Arrays.copyOfRange(frame.data, frame.offset, frame.offset + frame.length)));
            }
        }
        out.writeInt(frames.size());
        for (ByteSequence frame : frames) {
            write(frame, out);
        }
    }

    static void values(Random random, int count, DataOutputStream out) throws Exception {
        Filler filler = new Filler(random, OpenWireFormat.DEFAULT_WIRE_VERSION, false);
        for (; count > 0; count--) {
            ByteArrayOutputStream encoded = new ByteArrayOutputStream();
            MarshallingSupport.marshalPrimitiveMap(filler.map(DEPTH), new DataOutputStream(encoded));
            write(new ByteSequence(encoded.toByteArray()), out);
        }
    }

    /** Makes objects and sets all their properties that can be sent. */
    static class Filler {
        final Random random;
        /** Ids lack nothing: others cannot be looked up in a cache. */
        final boolean wholeIds;
        final List<Class<?>> types = new ArrayList<>();

        Filler(Random random, int version, boolean wholeIds) throws Exception {
            this.random = random;
            this.wholeIds = wholeIds;
            Class<?> factory = Class.forName("org.apache.activemq.openwire.v" + version + ".MarshallerFactory");
            Method create = factory.getMethod("createMarshallerMap", OpenWireFormat.class);
            for (DataStreamMarshaller each : (DataStreamMarshaller[]) create.invoke(null, new OpenWireFormat())) {
                if (each != null) {
                    types.add(each.createObject().getClass());
                }
            }
        }

        Object fill(Class<?> type, int depth) throws Exception {
            Object made = type.getDeclaredConstructor().newInstance();
            boolean whole = wholeIds && (type.getSimpleName().endsWith("Id") || type == SessionInfo.class);
            Method[] methods = type.getMethods();
            Arrays.sort(methods, Comparator.comparing(Method::toString));
            for (Method method : methods) {
                if (method.getName().startsWith("set") && method.getParameterCount() == 1 && isOfTheWire(method)) {
                    Class<?> wanted = method.getParameterTypes()[0];
                    if (wanted.isPrimitive() || whole || random.nextInt(10) < 7) {
                        Object value = value(method.getName(), wanted, whole ? Math.max(depth, 1) : depth);
                        if (value != null) {
                            method.invoke(made, value);
                        }
                    }
                }
            }
            if (made instanceof ActiveMQDestination) {
                ((ActiveMQDestination) made).setPhysicalName(name());
            }
            return made;
        }

        /** Not those that stand for others, or change what others set. */
        boolean isOfTheWire(Method method) {
            String name = method.getName();
            return !(name.startsWith("setJMS") && !name.equals("setJMSXGroupFirstForConsumer"))
                && !List.of("setText", "setPhysicalName", "setProducerSessionKey", "setMagic", "setRollbackCause",
                            "setMessageID", "setCompositeDestinations", "setOptions", "setURL", "setName").contains(name)
                && !(method.getDeclaringClass() == WireFormatInfo.class
                     && !List.of("setVersion", "setMarshalledProperties").contains(name))
                && !(name.equals("setValue") && method.getDeclaringClass().getSimpleName().equals("MessageId"));
        }

        Object value(String name, Class<?> wanted, int depth) throws Exception {
            if (wanted == boolean.class) return random.nextBoolean();
            if (wanted == byte.class) return (byte) random.nextInt();
            if (wanted == int.class) return random.nextBoolean() ? random.nextInt() : random.nextInt(100);
            if (wanted == long.class) return number();
            if (wanted == String.class) return text();
            if (wanted == byte[].class) return bytes();
            if (wanted == ByteSequence.class) return new ByteSequence(bytes());
            if (Throwable.class.isAssignableFrom(wanted)) return error(wanted == Throwable.class);
            if (depth == 0) return null;
            if (wanted.isArray() && DataStructure.class.isAssignableFrom(wanted.getComponentType())) {
                Object array = Array.newInstance(wanted.getComponentType(), random.nextInt(4));
                for (int i = 0; i < Array.getLength(array); i++) {
                    if (random.nextInt(10) > 0) {
                        Array.set(array, i, nested(name, wanted.getComponentType(), depth));
                    }
                }
                return array;
            }
            boolean isValue = DataStructure.class.isAssignableFrom(wanted) || wanted == BooleanExpression.class;
            return isValue ? nested(name, wanted, depth) : null;
        }

        Object nested(String name, Class<?> wanted, int depth) throws Exception {
            if (wanted == BooleanExpression.class) return fill(NetworkBridgeFilter.class, depth - 1);
            List<Class<?>> fitting = new ArrayList<>();
            for (Class<?> each : types) {
                if (name.equals("setObjectId") ? isRemovable(each) : wanted.isAssignableFrom(each)) {
                    fitting.add(each);
                }
            }
            return fill(fitting.get(random.nextInt(fitting.size())), depth - 1);
        }

        boolean isRemovable(Class<?> type) {
            return List.of("ConnectionId", "SessionId", "ConsumerId", "ProducerId").contains(type.getSimpleName());
        }

        /** Numbers of all sizes, as the tight encoding has some. */
        long number() {
            return random.nextLong() >> random.nextInt(64);
        }

        String text() {
            StringBuilder text = new StringBuilder();
            for (int left = random.nextInt(12); left > 0; left--) {
                if (random.nextInt(10) == 0) {
                    text.appendCodePoint(0x10000 + random.nextInt(0x100000));
                } else {
                    text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
                }
            }
            return text.toString();
        }

        Map<String, Object> map(int depth) {
            Map<String, Object> map = new LinkedHashMap<>();
            for (int left = random.nextInt(6); left > 0; left--) {
                map.put(text(), typed(depth));
            }
            return map;
        }

        Object typed(int depth) {
            switch (random.nextInt(depth > 0 ? 14 : 12)) {
                case 0: return null;
                case 1: return random.nextBoolean();
                case 2: return (byte) random.nextInt();
                case 3: return LETTERS.charAt(random.nextInt(LETTERS.length()));
                case 4: return (short) random.nextInt();
                case 5: return random.nextInt();
                case 6: return number();
                case 7: return random.nextGaussian();
                case 8: return (float) random.nextGaussian();
                case 9: return text();
                case 10: return bytes();
                case 11: return text().repeat(2000);
                case 12: return map(depth - 1);
                default:
                    List<Object> list = new ArrayList<>();
                    for (int left = random.nextInt(4); left > 0; left--) {
                        list.add(typed(depth - 1));
                    }
                    return list;
            }
        }

        String name() {
            StringBuilder name = new StringBuilder("n");
            for (int left = random.nextInt(8); left > 0; left--) {
                name.append("abc.>*".charAt(random.nextInt(6)));
            }
            return name.toString();
        }

        byte[] bytes() {
            byte[] bytes = new byte[random.nextInt(20)];
            random.nextBytes(bytes);
            return bytes;
        }

        Throwable error(boolean any) {
            String message = text(); // some versions cannot encode an exception without
            Throwable error = random.nextBoolean() ? new IllegalStateException(message) : new IOException(message);
            error.setStackTrace(new StackTraceElement[0]);
            if (random.nextBoolean()) {
                error.initCause(error(any));
            }
            return error;
        }
    }
}
