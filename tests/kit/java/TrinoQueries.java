import com.fasterxml.jackson.databind.ObjectMapper;
import io.trino.spi.type.SqlDecimal;
import io.trino.spi.type.SqlTimestampWithTimeZone;
import io.trino.spi.type.TimeZoneKey;
import io.trino.testing.LocalQueryRunner;
import io.trino.testing.MaterializedResult;
import io.trino.testing.MaterializedRow;
import io.trino.testing.TestingSession;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Runs queries in Trino's own engine, without a server: from stdin, a JSON list; to stdout, a line for each of them. */
public final class TrinoQueries {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        String[] queries = json.readValue(System.in, String[].class);
        var session = TestingSession.testSessionBuilder().setTimeZoneKey(TimeZoneKey.UTC_KEY).build();
        try (LocalQueryRunner runner = LocalQueryRunner.create(session)) {
            for (String query : queries) {
                Object answer;
                try {
                    answer = shown(runner.execute(query));
                } catch (RuntimeException error) {
                    answer = Map.of("error", String.valueOf(error.getMessage()));
                }
                byte[] line = (json.writeValueAsString(answer) + "\n").getBytes(StandardCharsets.UTF_8);
                System.out.write(line, 0, line.length);
            }
        }
        System.out.flush();
        System.exit(0);
    }

    private static Map<String, Object> shown(MaterializedResult result) {
        List<List<Object>> rows = new ArrayList<>();
        for (MaterializedRow row : result.getMaterializedRows()) {
            List<Object> values = new ArrayList<>();
            for (Object value : row.getFields()) {
                values.add(plain(value));
            }
            rows.add(values);
        }
        return Map.of("columns", result.getColumnNames(), "rows", rows);
    }

    /** Returns times as epoch milliseconds, and decimals as doubles. */
    private static Object plain(Object value) {
        if (value instanceof ZonedDateTime time) {
            return time.toInstant().toEpochMilli();
        }
        if (value instanceof SqlTimestampWithTimeZone time) {
            return time.getEpochMillis();
        }
        if (value instanceof SqlDecimal decimal) {
            return decimal.toBigDecimal().doubleValue();
        }
        return value instanceof BigDecimal decimal ? (Object) decimal.doubleValue() : value;
    }
}
