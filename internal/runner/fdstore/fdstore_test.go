package fdstore

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A client finds the files that an earlier client stored and did not delete.
func TestFilesOutliveTheirClient(t *testing.T) {
	var s Store
	var serving sync.WaitGroup
	connect := func() Client {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		serving.Go(func() { s.Serve(pair[0]) })
		return Client(pair[1])
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	first := connect()
	for _, name := range []string{"kept", "deleted"} {
		if err := first.Put(name, w); err != nil {
			t.Fatal(err)
		}
	}
	first.Delete("deleted")
	_ = unix.Close(int(first))
	_ = w.Close()
	serving.Wait()

	second := connect()
	defer serving.Wait()
	defer unix.Close(int(second))
	all, err := second.All()
	if err != nil || len(all) != 1 || all["kept"] == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	if _, err := unix.Write(all["kept"], []byte("x")); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(all["kept"])
	if n, err := r.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if all, err := Client(0).All(); len(all) > 0 || err != nil {
		t.Errorf("without a store: %v, %v", all, err)
	}
}
