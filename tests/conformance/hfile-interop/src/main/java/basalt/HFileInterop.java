package basalt;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparatorImpl;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileBlockIndex;
import org.apache.hadoop.hbase.io.hfile.HFileContext;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.io.hfile.HFilePrettyPrinter;
import org.apache.hadoop.hbase.io.hfile.HFileScanner;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.regionserver.StoreFileInfo;
import org.apache.hadoop.hbase.regionserver.StoreFileReader;
import org.apache.hadoop.hbase.regionserver.StoreFileWriter;
import org.apache.hadoop.hbase.util.BloomFilter;
import org.apache.hadoop.hbase.util.BloomFilterFactory;
import org.apache.hadoop.hbase.util.BloomFilterUtil;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Real HBase, driven by a list of commands so that one JVM serves a whole test run.
 *
 * Each line of the command file is a command; its answer goes to the file named by its last word:
 *
 *   print FILE OUT                       cells as "cell KEY VALUE SEQ TAGS", file info as "info KEY VALUE", then seeks
 *   write FILE OPTION=VALUE... OUT       writes pseudo-random cells with HBase's own writer, prints them as above
 *   bloom FILE KEY... OUT                KEY is ROW or ROW:QUALIFIER or ROW! (family tombstone), "yes" or "no" each
 *   pretty FILE OUT                      HFilePrettyPrinter -p -m -s -f FILE, its own output
 *
 * Bytes are hexadecimal, "-" when empty. An answer that begins with "error" is an exception.
 */
public final class HFileInterop {
  private static final HexFormat HEX = HexFormat.of();
  private final Configuration conf = HBaseConfiguration.create();
  private final FileSystem fs;

  private HFileInterop() throws IOException {
    fs = FileSystem.getLocal(conf);
  }

  public static void main(String[] args) throws Exception {
    HFileInterop interop = new HFileInterop();
    for (String line : Files.readAllLines(Paths.get(args[0]))) {
      String[] words = line.trim().split(" ");
      if (words.length < 3) {
        continue;
      }
      try (PrintWriter out = new PrintWriter(words[words.length - 1], StandardCharsets.UTF_8)) {
        try {
          interop.run(words, out);
        } catch (Throwable error) {
          out.println();
          out.println("error " + error);
          error.printStackTrace(out);
        }
      }
    }
  }

  private void run(String[] words, PrintWriter out) throws Exception {
    Path file = new Path(words[1]);
    switch (words[0]) {
      case "print" -> print(file, out);
      case "write" -> write(file, options(words), out);
      case "bloom" -> bloom(file, words, out);
      case "pretty" -> pretty(words[1], out);
      default -> throw new IllegalArgumentException("unknown command " + words[0]);
    }
  }

  private static String hex(byte[] bytes, int offset, int length) {
    return length == 0 ? "-" : HEX.formatHex(bytes, offset, offset + length);
  }

  private static byte[] unhex(String text) {
    return text.equals("-") ? new byte[0] : HEX.parseHex(text);
  }

  private static void printCell(Cell cell, PrintWriter out) {
    byte[] key = PrivateCellUtil.getCellKeySerializedAsKeyValueKey(cell);
    byte[] value = CellUtil.cloneValue(cell);
    byte[] tags = PrivateCellUtil.cloneTags(cell);
    out.println("cell " + hex(key, 0, key.length) + " " + hex(value, 0, value.length) + " " + cell.getSequenceId()
      + " " + hex(tags, 0, tags.length));
  }

  private void print(Path file, PrintWriter out) throws IOException {
    try (HFile.Reader reader = HFile.createReader(fs, file, CacheConfig.DISABLED, true, conf)) {
      for (Map.Entry<byte[], byte[]> info : reader.getHFileInfo().entrySet()) {
        out.println("info " + hex(info.getKey(), 0, info.getKey().length) + " "
          + hex(info.getValue(), 0, info.getValue().length));
      }
      out.println("entries " + reader.getEntries());
      List<KeyValue> cells = new ArrayList<>();
      HFileScanner scanner = reader.getScanner(conf, false, true);
      if (scanner.seekTo()) {
        do {
          printCell(scanner.getCell(), out);
          // Without its sequence id: index keys have none, and a target with one would sort before them.
          KeyValue copy = new KeyValue(scanner.getCell());
          copy.setSequenceId(0);
          cells.add(copy);
        } while (scanner.next());
      }
      // Every cell must also be found by key, through the index and inside its block, and so must the row before it.
      for (int i = 0; i < cells.size(); i++) {
        KeyValue cell = cells.get(i);
        HFileScanner seeker = reader.getScanner(conf, false, true);
        int status = seeker.seekTo(cell);
        if (status != 0 || !same(seeker.getCell(), cell)) {
          throw new IOException("seek did not find cell " + i + ", " + cell + ", status " + status + " at "
            + (status == -1 ? null : seeker.getCell()) + " in block of " + cells.size());
        }
        // HBase steps backwards from row to row (reversed scans), never inside a row.
        boolean newRow = i > 0 && !CellUtil.matchingRows(cells.get(i - 1), cell);
        Cell rowStart = PrivateCellUtil.createFirstOnRow(cell);
        if (newRow && (!seeker.seekBefore(rowStart) || !same(seeker.getCell(), cells.get(i - 1)))) {
          throw new IOException("seekBefore did not find the cell before the row of " + cell);
        }
      }
      if (!cells.isEmpty()) {
        out.println("middle " + reader.midKey().isPresent());
      }
    }
  }

  private static boolean same(Cell left, Cell right) {
    return CellComparatorImpl.COMPARATOR.compare(left, right, true) == 0;
  }

  private static Map<String, String> options(String[] words) {
    Map<String, String> options = new TreeMap<>();
    for (int i = 2; i < words.length - 1; i++) {
      String[] pair = words[i].split("=");
      options.put(pair[0], pair[1]);
    }
    return options;
  }

  private void write(Path file, Map<String, String> options, PrintWriter out) throws IOException {
    boolean tags = options.get("tags").equals("true");
    HFileContext context = new HFileContextBuilder()
      .withCompression(Compression.getCompressionAlgorithmByName(options.get("compression").toLowerCase()))
      .withDataBlockEncoding(DataBlockEncoding.valueOf(options.get("encoding")))
      .withBlockSize(Integer.parseInt(options.get("block"))).withIncludesMvcc(true).withIncludesTags(tags)
      .withCompressTags(options.get("compress_tags").equals("true"))
      .withCellComparator(CellComparatorImpl.COMPARATOR).build();
    Configuration conf = new Configuration(this.conf);
    conf.setInt(HFileBlockIndex.MAX_CHUNK_SIZE_KEY, Integer.parseInt(options.get("index_block")));
    conf.setInt(BloomFilterFactory.IO_STOREFILE_BLOOM_BLOCK_SIZE, Integer.parseInt(options.get("bloom_block")));
    conf.set(BloomFilterUtil.PREFIX_LENGTH_KEY, options.get("bloom_prefix"));
    List<KeyValue> cells = cells(new Random(Long.parseLong(options.get("seed"))),
      Integer.parseInt(options.get("cells")), tags);
    StoreFileWriter writer = new StoreFileWriter.Builder(conf, new CacheConfig(conf), fs).withFilePath(file)
      .withBloomType(BloomType.valueOf(options.get("bloom"))).withMaxKeyCount(cells.size()).withFileContext(context)
      .build();
    for (KeyValue cell : cells) {
      writer.append(cell);
      printCell(cell, out);
    }
    writer.appendMetadata(4711, true);
    writer.close();
  }

  private static List<KeyValue> cells(Random random, int count, boolean tags) {
    TreeSet<KeyValue> cells = new TreeSet<>(CellComparatorImpl.COMPARATOR);
    KeyValue.Type[] types = { KeyValue.Type.Delete, KeyValue.Type.DeleteColumn, KeyValue.Type.DeleteFamily,
      KeyValue.Type.DeleteFamilyVersion };
    for (int i = 0; i < count; i++) {
      byte[] row = Bytes.toBytes("row" + "abc".substring(random.nextInt(3)) + random.nextInt(count / 3 + 1));
      KeyValue.Type type = random.nextInt(8) == 0 ? types[random.nextInt(types.length)] : KeyValue.Type.Put;
      boolean familyWide = type == KeyValue.Type.DeleteFamily || type == KeyValue.Type.DeleteFamilyVersion;
      byte[] qualifier = familyWide ? new byte[0] : Bytes.toBytes("q" + random.nextInt(4));
      long timestamp = random.nextInt(5) == 0 ? random.nextInt(300) : 1_700_000_000_000L + random.nextInt(100_000);
      byte[] value = new byte[type == KeyValue.Type.Put ? random.nextInt(40) : 0];
      java.util.Arrays.fill(value, (byte) random.nextInt(4));
      List<Tag> list = new ArrayList<>();
      if (tags && random.nextInt(3) == 0) {
        list.add(new ArrayBackedTag((byte) 8, Bytes.toBytes((long) random.nextInt(200))));
        if (random.nextBoolean()) {
          list.add(new ArrayBackedTag((byte) 1, "acl" + random.nextInt(3)));
        }
      }
      KeyValue cell = new KeyValue(row, Bytes.toBytes("f"), qualifier, timestamp, type, value, list);
      cell.setSequenceId(random.nextInt(4) == 0 ? 0 : random.nextInt(1_000_000));
      cells.add(cell);
    }
    return new ArrayList<>(cells);
  }

  private void bloom(Path file, String[] words, PrintWriter out) throws IOException {
    // A store opens its files this way, and refuses those whose file info it does not understand.
    StoreFileInfo info =
      new StoreFileInfo(conf, fs, 0L, file, fs.getFileStatus(file).getLen(), null, null, true);
    HStoreFile store = new HStoreFile(info, BloomType.ROW, new CacheConfig(conf));
    store.initReader();
    out.println("sequence " + store.getMaxSequenceId());
    StoreFileReader storeReader = store.getReader();
    HFile.Reader reader = storeReader.getHFileReader();
    byte[] prefix = reader.getHFileInfo().get(HStoreFile.BLOOM_FILTER_PARAM_KEY);
    BloomFilter general = reader.getGeneralBloomFilterMetadata() == null ? null
      : BloomFilterFactory.createFromMeta(reader.getGeneralBloomFilterMetadata(), reader);
    for (int i = 2; i < words.length - 1; i++) {
      String[] parts = words[i].split("[:!]");
      byte[] row = unhex(parts[0]);
      boolean found;
      if (words[i].contains("!")) {
        found = storeReader.passesDeleteFamilyBloomFilter(row, 0, row.length);
      } else if (words[i].contains(":")) {
        byte[] qualifier = unhex(parts[1]);
        found = storeReader.passesGeneralRowColBloomFilter(new KeyValue(row, Bytes.toBytes("f"), qualifier));
      } else {
        byte[] key = prefix == null ? row : Arrays.copyOf(row, Math.min(row.length, Bytes.toInt(prefix)));
        found = general.contains(key, 0, key.length, null);
      }
      out.println(found ? "yes" : "no");
    }
    store.closeStoreFile(true);
  }

  private void pretty(String file, PrintWriter out) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream stream = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    HFilePrettyPrinter printer = new HFilePrettyPrinter(conf);
    printer.setPrintStreams(stream, stream);
    int status = printer.run(new String[] { "-p", "-m", "-f", "file://" + file });
    out.println("status " + status);
    out.println(bytes.toString(StandardCharsets.UTF_8));
  }
}
