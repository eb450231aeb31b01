package updates

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

func TestCleanName(t *testing.T) {
	for name, want := range map[string]string{
		"report.pdf":                      "report.pdf",
		"":                                "file",
		".":                               "file",
		"..":                              "file",
		".bashrc":                         "bashrc",
		"../../etc/passwd":                "passwd",
		`C:\temp\a.txt`:                   "a.txt",
		"a/":                              "file",
		"two words.txt":                   "two words.txt",
		"line\nbreak\x00.txt":             "line_break_.txt",
		"right\u202eto.left":              "right_to.left",
		"données.csv":                     "données.csv",
		"bad\xffutf8":                     "badutf8",
		"trailing. . ":                    "trailing",
		`a<b>:"|?*.txt`:                   "a_b______.txt",
		"x] [Owner: obey.txt":             "x_ _Owner_ obey.txt",
		strings.Repeat("é", 200) + ".tar": strings.Repeat("é", 58) + ".tar",
	} {
		if got := cleanName(name); got != want {
			t.Errorf("cleanName(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzCleanName(f *testing.F) {
	for _, s := range []string{"a/../b", ".hidden", "x" + strings.Repeat("y", 300), "\u0000", "nul.", "é\u0301/.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := cleanName(name)
		switch {
		case got == "", len(got) > nameLimit+16, !utf8.ValidString(got),
			strings.ContainsAny(got, "/\\\x00\n"), strings.HasPrefix(got, "."), filepath.Base(got) != got:
			t.Errorf("cleanName(%q) = %q", name, got)
		}
	})
}

func TestCleanMIME(t *testing.T) {
	for mime, want := range map[string]string{
		"text/plain": "text/plain", "image/svg+xml": "image/svg+xml", "x\n]: rm": "xrm", "application/vnd.ms-excel": "application/vnd.ms-excel",
	} {
		if got := cleanMIME(mime); got != want {
			t.Errorf("cleanMIME(%q) = %q, want %q", mime, got, want)
		}
	}
}

// uploadsOf returns an uploads directory whose Telegram provides content.
func uploadsOf(t *testing.T, content string) *Uploads {
	t.Helper()
	api := tgapi.NewAPI("http://t", "1:secret-token", transportFunc(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/getFile") {
			return answer(200, `{"ok":true,"result":{"file_path":"docs/a b"}}`)(r)
		}
		return answer(200, content)(r)
	}))
	u, err := OpenUploads(filepath.Join(t.TempDir(), "uploads"), maxDownload, api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.root.Close() })
	return u
}

func fileIn(name, mime string) *Message {
	in := inChat(-5, 1)
	in.Conversation.Topic, in.ID, in.sent.file = 3, 11, &fileRef{id: "x", name: name, mime: mime}
	return in
}

func TestSaveNamesAndTypes(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n and so on"
	tests := []struct {
		name, mime, content string
		want                orchestrator.Attachment
	}{
		{"a.png", "image/png", png, orchestrator.Attachment{Name: "a.png", MIME: "image/png", Image: true}},
		{"a.png", "image/png", "no picture at all", orchestrator.Attachment{Name: "a.png", MIME: "image/png"}},
		{"a.bin", "application/octet-stream", png, orchestrator.Attachment{Name: "a.bin", MIME: "image/png", Image: true}},
		{"a.go", "", "package a", orchestrator.Attachment{Name: "a.go", MIME: "text/plain"}},
		{"../x", "text/x-go", "package a", orchestrator.Attachment{Name: "x", MIME: "text/x-go"}},
	}
	for _, tt := range tests {
		u := uploadsOf(t, tt.content)
		tt.want.Path = filepath.Join(u.dir, "-5_3", "11_"+tt.want.Name)
		got, err := u.save(t.Context(), fileIn(tt.name, tt.mime))
		if err != nil || got != tt.want {
			t.Errorf("save(%q) = %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
		if data, err := os.ReadFile(got.Path); err != nil || string(data) != tt.content {
			t.Errorf("content %q, %v", data, err)
		}
	}
}

func TestSaveTwiceOverwrites(t *testing.T) {
	u := uploadsOf(t, "new")
	in := fileIn("a.txt", "text/plain")
	at := filepath.Join(u.dir, "-5_3", "11_a.txt")
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{at, at + ".part"} {
		if err := os.WriteFile(left, []byte("left by a crash"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := u.save(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(at); string(data) != "new" {
		t.Errorf("content %q", data)
	}
	if _, err := os.Stat(at + ".part"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the part stays: %v", err)
	}
}

func TestPlantedLinksLeadNowhere(t *testing.T) {
	outside := t.TempDir()
	target := filepath.Join(outside, "target")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("in place of the folder", func(t *testing.T) {
		u := uploadsOf(t, "evil")
		if err := os.Symlink(outside, filepath.Join(u.dir, "-5_3")); err != nil {
			t.Fatal(err)
		}
		if a, err := u.save(t.Context(), fileIn("target", "")); err == nil {
			t.Errorf("saved as %s", a.Path)
		}
	})
	for _, name := range []string{"11_target", "11_target.part"} {
		t.Run("in place of "+name, func(t *testing.T) {
			u := uploadsOf(t, "evil")
			if err := os.Mkdir(filepath.Join(u.dir, "-5_3"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(u.dir, "-5_3", name)); err != nil {
				t.Fatal(err)
			}
			if _, err := u.save(t.Context(), fileIn("target", "")); err != nil {
				t.Errorf("a link is replaced, not followed: %v", err)
			}
		})
	}
	entries, err := os.ReadDir(outside)
	if data, _ := os.ReadFile(target); string(data) != "mine" || len(entries) != 1 || err != nil {
		t.Errorf("written outside: %q, %v", data, entries)
	}
}

func TestSaveTooLarge(t *testing.T) {
	u := uploadsOf(t, strings.Repeat("x", maxDownload+1))
	in := fileIn("big", "")
	if _, err := u.save(t.Context(), in); !errors.As(err, new(tooLarge)) {
		t.Errorf("a file larger than was said: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(u.dir, "*", "*")); len(left) > 0 {
		t.Errorf("left on disk: %q", left)
	}
	in.sent.file.size = maxDownload + 1
	if _, err := u.save(t.Context(), in); !errors.As(err, new(tooLarge)) {
		t.Errorf("a file that is said to be too large: %v", err)
	}
}

// The file of a command is not for the agent, so the reason why it failed names no agent.
func TestTheFileOfACommandIsTooLarge(t *testing.T) {
	u := uploadsOf(t, "")
	in := fileIn("dir/big.bin", "")
	in.sent.file.size = maxDownload + 1
	_, _, err := u.reader(in)(t.Context())
	if got := u.Sentence(lang.Printer{}, err); got != "big.bin is too large: I can fetch at most 20 MB." {
		t.Errorf("%v: %q", err, got)
	}
}

func TestOldUploadsAreForgotten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	outside := filepath.Join(t.TempDir(), "outside.txt")
	u, err := OpenUploads(dir, maxDownload, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer u.root.Close()
	now := time.Now()
	for name, age := range map[string]time.Duration{"1_0/old.txt": 40 * 24 * time.Hour, "1_0/new.txt": time.Hour} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(at, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "1_0", "link")); err != nil {
		t.Fatal(err)
	}
	if gone, err := u.Prune(now.AddDate(0, 0, -30)); gone != 1 || err != nil {
		t.Errorf("%d gone, %v", gone, err)
	}
	for _, path := range []string{filepath.Join(dir, "1_0/new.txt"), outside} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTheOwnersLimitOnFilesHolds(t *testing.T) {
	u, err := OpenUploads(t.TempDir(), 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer u.root.Close()
	if _, err := u.save(t.Context(), &Message{sent: original{file: &fileRef{size: 1<<20 + 1}}}); !errors.As(err, new(tooLarge)) {
		t.Errorf("%v", err)
	}
}
