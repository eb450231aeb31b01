package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWhatAListPermits(t *testing.T) {
	denied := ToolList{Denied: []string{"Bash", "mcp:github", "Edit(/etc/*)"}}
	for tool, want := range map[string]bool{
		"Bash": false, "Edit": true, "mcp__github__create": false, "github.create": false, "github-create": false, "mcp_github_create": false,
		"mcp__gitlab__create": true,
	} {
		if got := denied.Permits(tool); got != want {
			t.Errorf("%s: %v", tool, got)
		}
	}
	if only := (ToolList{Only: []string{"Read"}}); only.Permits("Bash") || !only.Permits("Read") {
		t.Error("a list says which tools there are, and others may be used")
	}
}

func TestImagesInBase64(t *testing.T) {
	image := Image{Path: filepath.Join(t.TempDir(), "a.png")}
	if _, err := image.Base64(8); err == nil {
		t.Error("a missing image was read")
	}
	if err := os.WriteFile(image.Path, []byte("a picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := image.Base64(9); got != "YSBwaWN0dXJl" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := image.Base64(8); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("an image that is too large: %v", err)
	}
}

// An agent that may write to the folder of uploads replaces a picture by a link to a file outside, or by a pipe.
func TestAPictureIsNoLinkAndNoPipe(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, replace := range map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink(secret, path) },
		"a hard link": func(path string) error { return os.Link(secret, path) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		image := Image{Path: filepath.Join(t.TempDir(), "a.png")}
		if err := replace(image.Path); err != nil {
			t.Fatal(err)
		}
		if got, err := image.Base64(100); got != "" || err == nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
