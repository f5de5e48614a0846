// stream_peer on a path at one end of a wire, the programs of others at the other.
//
//   side a   ours: stream_peer, through run_ours() and start_ours()
//   side b   theirs: curl, nginx, socat, python3, through run() and start()
//
// A TAP is a wire by itself: its two ends stand in one namespace, b.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>

#include "testkit/wan_pair.hpp"
#include "tests/system/program.hpp"
#include "tests/system/stream_pattern.hpp"

namespace netchannel {

struct Way {
  const char* name;
  const char* path;  // stream_peer's --path
  std::uint32_t mtu = 1500;
  bool tap() const { return std::string_view(path) == "tap"; }
};
inline std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

inline constexpr Way kXdp{"xdp", "xdp"}, kXdp9000{"xdp_9000", "xdp", 9000}, kBulk{"bulk", "bulk"},
    kTap{"tap", "tap"}, kKernel{"kernel", "kernel"};

// A folder of files for one test.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "netchannel-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_pattern_file(const std::string& path, std::uint64_t size) {
  std::ofstream file(path, std::ios::binary);
  std::vector<std::byte> piece(1 << 16);
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    const MutableBytes here = MutableBytes(piece).first(std::min<std::uint64_t>(piece.size(), size - at));
    fill_pattern(here, at);
    file.write(reinterpret_cast<const char*>(here.data()), static_cast<std::streamsize>(here.size()));
  }
}

inline std::string sha256_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "no file " + path;
  Sha256 sum;
  std::vector<char> piece(1 << 16);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0)
    sum.add(std::as_bytes(std::span(piece)).first(static_cast<std::size_t>(file.gcount())));
  return sum.finish();
}

class TcpPeers : public testkit::WanPair {
 protected:
  using Command = std::vector<std::string>;

  void wire(const Way& way) {
    way_ = way;
    VethPair::build({.mtu = way.mtu});
    if (!way.tap()) return;
    in_b([&] {
      must(
          "ip tuntap add dev nctap0 mode tap && ip addr add 10.88.0.2/24 dev nctap0 && "
          "ip addr add fd88::2/64 dev nctap0 nodad && ip link set nctap0 up");
    });
  }
  void path(const Way& way, device::LinkOptions options) {
    way_ = way;
    behind_ = way.tap();
    options.mtu = way.mtu;
    WanPair::build(options, way.tap());
  }

  // As they stand in a URL.
  std::string ours(bool v6 = false) const {
    if (way_.tap() && !behind_) return v6 ? "[fd88::1]" : "10.88.0.1";
    return v6 ? "[fd77::1]" : "10.77.0.1";
  }
  std::string theirs(bool v6 = false) const {
    if (way_.tap() && !behind_) return v6 ? "[fd88::2]" : "10.88.0.2";
    return v6 ? "[fd77::2]" : "10.77.0.2";
  }

  Program start(const Command& command) {
    std::optional<Program> made;
    in_b([&] { made.emplace(command); });
    return std::move(*made);
  }
  // Its output; it must end well.
  std::string run(const Command& command, std::chrono::seconds patience = std::chrono::seconds(40)) {
    Program program = start(command);
    EXPECT_EQ(program.finish(patience), 0) << command[0] << " said: " << program.output();
    return program.output();
  }
  Program start_ours(Command words) {
    Command command{STREAM_PEER, "--path", way_.path, "--device", way_.tap() ? "nctap0" : "eth0"};
    if (way_.tap()) {
      for (const std::string address :
           {behind_ ? "10.77.0.1/24" : "10.88.0.1/24", behind_ ? "fd77::1/64" : "fd88::1/64"})
        command.insert(command.end(), {"--address", address});
    }
    command.insert(command.end(), words.begin(), words.end());
    if (!way_.tap()) return Program(command);
    std::optional<Program> made;
    const auto make = [&] { made.emplace(command); };
    behind_ ? in_between(make) : in_b(make);
    return std::move(*made);
  }
  std::string run_ours(const Command& words, std::chrono::seconds patience = std::chrono::seconds(40)) {
    Program program = start_ours(words);
    EXPECT_EQ(program.finish(patience), 0) << "ours said: " << program.output();
    return program.output();
  }
  Program serve() {
    Program program = start_ours({"serve"});
    EXPECT_TRUE(program.wait_for("serves on")) << program.output();
    return program;
  }
  // Waits until somebody in b listens on the port.
  void listens(int port) {
    in_b([&] {
      must("for i in $(seq 200); do ss -Hltn sport = :" + std::to_string(port) +
           " | grep -q . && exit 0; sleep 0.02; done; exit 1");
    });
  }
  // Python's peer of tcp_peer.py.
  static Command python(Command words) {
    words.insert(words.begin(), {"python3", NETCHANNEL_SOURCE_DIR "/tests/system/tcp_peer.py"});
    return words;
  }
  // An nginx in b on port 8000: the folder's files, /in/ takes files by PUT, /ours/ is passed on to ours.
  Program nginx() {
    std::filesystem::create_directory(folder / "in");
    std::ofstream(folder / "nginx.conf")
        << "daemon off; master_process off; user root; pid " << folder / "pid" << "; error_log stderr;\n"
        << "events { worker_connections 2048; }\n"
        << "http { access_log off; client_max_body_size 0; client_body_temp_path " << folder / "body"
        << "; proxy_temp_path " << folder / "proxy" << "; fastcgi_temp_path " << folder / "f"
        << "; uwsgi_temp_path " << folder / "u" << "; scgi_temp_path " << folder / "s" << ";\n"
        << "upstream us { server " << ours() << ":80; keepalive 8; }\n"
        << "server { listen 8000 backlog=1024; listen [::]:8000 backlog=1024; root " << folder.path().string()
        << ";\n"
        << "location /in/ { dav_methods PUT; }\n"
        << "location /ours/ { proxy_pass http://us/; proxy_http_version 1.1; proxy_set_header Connection "
           "\"\"; } } }\n";
    Program program = start({"nginx", "-c", folder / "nginx.conf", "-p", folder.path(), "-e", "stderr"});
    listens(8000);
    return program;
  }
  static bool missing(const char* program) {
    return testkit::shell(std::string("command -v ") + program + " >/dev/null") != 0;
  }

  Folder folder;

 private:
  Way way_{};
  bool behind_ = false;  // the TAP's other end is the path, not b
};

// Skips the test, with the reason, where it cannot run.
#define NEEDS(program)     \
  if (IsSkipped()) return; \
  if (missing(program)) GTEST_SKIP() << "SKIPPED: no " program "; install Debian's package"

inline std::string name_of_way(const ::testing::TestParamInfo<Way>& info) { return info.param.name; }

}  // namespace netchannel
