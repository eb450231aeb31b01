package supervisor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	smallHeap  = 20       // percent the heap may grow: of a megabyte, not of much
	softMemory = 24 << 20 // bytes; beyond it the collector works harder
)

// Main is a whole supervisor process: it talks to the client that started it over the socket that is its
// standard input, and to later ones over the run's own. It returns an exit code when nothing keeps it. args
// may hold protocol=VERSION:MIN, for drills of upgrades; what to run is never in args. complaints gets what
// no client can be told.
func Main(args []string, complaints io.Writer) int {
	debug.SetGCPercent(smallHeap)
	debug.SetMemoryLimit(softMemory)
	proto, err := protocolOf(args)
	if err == nil {
		err = supervise(proto)
	}
	if err != nil {
		fmt.Fprintln(complaints, "supervise:", err)
		return 1
	}
	return 0
}

func protocolOf(args []string) (Protocol, error) {
	p := ours()
	for _, arg := range args {
		text, ok := strings.CutPrefix(arg, "protocol=")
		version, oldest, both := strings.Cut(text, ":")
		var errs [2]error
		p.Version, errs[0] = strconv.Atoi(version)
		p.Min, errs[1] = strconv.Atoi(oldest)
		if !ok || !both || errors.Join(errs[:]...) != nil {
			return p, fmt.Errorf("%q is no argument of a supervisor", arg)
		}
	}
	return p, nil
}

// supervise waits for a spec, and serves the run to its end.
func supervise(proto Protocol) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT) // not Ignore: the agent would inherit that
	conn, err := firstClient()
	if err != nil {
		return err
	}
	tr := unixTransport{}
	pid, err := tr.admit(conn)
	if err != nil {
		return err
	}
	r, w := newFrameReader(conn), frameWriter{w: conn}
	h, err := readHello(r)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil // a spare that was not needed
	}
	if err != nil {
		return fmt.Errorf("read hello: %w", err)
	}
	s, no := startFor(h, proto, tr)
	if no != nil {
		return w.json(kindRefused, no)
	}
	signal.Notify(signals, syscall.SIGTERM)
	s.wg.Go(func() {
		defer conn.Close()
		s.serve(conn, r, h, pid)
	})
	s.keep(signals)
	s.leave()
	return nil
}

// startFor does what the first hello asks for.
func startFor(h hello, proto Protocol, tr transport) (*server, *refused) {
	if _, err := agree(h.Protocol, proto); err != nil {
		return nil, &refused{Protocol: proto, Kind: refusedVersion, Error: err.Error()}
	}
	if h.Role != roleStart || h.Spec == nil {
		return nil, &refused{Protocol: proto, Error: "nothing was started yet"}
	}
	s, err := newServer(h, proto, tr)
	if err != nil {
		return nil, &refused{Protocol: proto, Error: err.Error(), Errno: errnoOf(err)}
	}
	return s, nil
}

// firstClient is the connection on standard input, which becomes /dev/null.
func firstClient() (net.Conn, error) {
	conn, err := net.FileConn(os.Stdin)
	if err != nil {
		return nil, fmt.Errorf("standard input is not a client: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if err := unix.Dup3(int(null.Fd()), 0, 0); err != nil {
		return nil, fmt.Errorf("close standard input: %w", err)
	}
	return conn, nil
}
