import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A name node on a port and one data node, both in this process, their files in a folder. */
public final class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, arguments[1]);
        settings.setBoolean("dfs.permissions.enabled", false);
        new MiniDFSCluster.Builder(settings)
            .nameNodePort(Integer.parseInt(arguments[0]))
            .numDataNodes(1)
            .build()
            .waitActive();
        System.out.println("active");
        Thread.sleep(Long.MAX_VALUE);
    }
}
