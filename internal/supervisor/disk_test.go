package supervisor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk makes a root on a disk of its own.
func smallDisk(t *testing.T, size string) *Root {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		leaveOut(t, "no tmpfs can be mounted: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return reopen(t, dir, Options{})
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("an owner gets everything", func(t *testing.T) {
		root := smallDisk(t, "128k")
		run := start(t, root, helper(t, "lines", "LINES=4096"))
		checkLines(t, run.Stdout(), 0, 4096)
		await(t, "done", run.Done())
		eventually(t, "the loss is noted", func() bool {
			info, err := run.Inspect(t.Context())
			return err == nil && info.Status != nil && info.Status.Missing > 0 && len(info.Status.Trouble) > 0
		})
		if run.LostBytes() != 0 {
			t.Errorf("%d bytes lost", run.LostBytes())
		}
	})
	t.Run("the end is there for who comes later", func(t *testing.T) {
		root := smallDisk(t, "128k")
		run := start(t, root, sh(`exec >/dev/null; exec sleep 0`))
		run.Detach()
		spec := helper(t, "lines", "LINES=1024")
		spec.ID = "later"
		run = start(t, root, spec)
		run.Detach()
		eventually(t, "the end", func() bool {
			info := root.look(t.Context(), "later")
			return info.Status != nil && info.Status.Ended
		})
		again := attach(t, root, "later", 0)
		var raw []byte
		for losses := 0; ; losses++ {
			part, err := io.ReadAll(again.Stdout())
			raw = append(raw, part...)
			var lost *LostError
			if err == nil {
				break
			}
			if !errors.As(err, &lost) || losses > 100 {
				t.Fatal(err)
			}
		}
		if int64(len(raw))+again.LostBytes() != 1024*lineLength || !bytes.HasSuffix(raw, []byte(numbered(1023))) || len(raw) < memorySize {
			t.Errorf("%d bytes and %d lost", len(raw), again.LostBytes())
		}
		if got := again.Exit(); !got.Known || got.Code != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("status.json has its place", func(t *testing.T) {
		root := smallDisk(t, "64k")
		spec := sh(`read x; exit 6`)
		spec.Limits.KeepResult = 1
		run := start(t, root, spec)
		eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
		if err := os.WriteFile(filepath.Join(root.dir, "ballast"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		run.Detach()
		run = attach(t, root, run.ID(), 0)
		if err := run.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		await(t, "done", run.Done())
		run.Detach()
		eventually(t, "the supervisor leaves", func() bool { return root.pool.reap() == 0 })
		if info := root.look(t.Context(), run.ID()); info.Status == nil || info.Status.Code != 6 {
			t.Errorf("%+v", info)
		}
	})
}

// A disk that may no longer be written still gives what is on it. Nothing new starts there, and both say why.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	root := smallDisk(t, "1m")
	spec := sh(`echo all of it; exit 5`)
	spec.Limits.KeepResult = 1
	run := start(t, root, spec)
	await(t, "done", run.Done())
	run.Detach()
	eventually(t, "the supervisor leaves", func() bool { return root.pool.reap() == 0 })
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("", root.dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(unix.MS_RDONLY)
	if _, err := root.Start(t.Context(), sh(`true`)); !errors.Is(err, unix.EROFS) {
		t.Errorf("start: %v", err)
	}
	again := attach(t, root, run.ID(), 0)
	if got := readAll(t, again.Stdout()); got != "all of it\n" {
		t.Errorf("%q", got)
	}
	await(t, "done", again.Done())
	if got := again.Exit(); !got.Known || got.Code != 5 {
		t.Errorf("%+v", got)
	}
	if err := again.Collect(t.Context()); !errors.Is(err, unix.EROFS) {
		t.Errorf("collect: %v", err)
	}
	remount(0)
	if err := again.Collect(t.Context()); err != nil || exists(t, root.path(run.ID())) {
		t.Error("not collected", err)
	}
}
