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

// The names of servers are compared whole. If a tool can belong to several servers, its list neither permits nor
// forbids it.
func TestAListNamesWholeServers(t *testing.T) {
	denied, only := ToolList{Denied: []string{"mcp:github"}}, ToolList{Only: []string{"mcp:github"}}
	for tool, want := range map[string]string{
		"mcp:github": "of it", "mcp:github_enterprise": "of another",
		"mcp__github__create": "of it", "mcp__github__create_issue": "of it", "mcp_github_create": "of it",
		"github.create": "of it", "github.create-an.issue": "of it", "github": "of it",
		"mcp__github_enterprise__create": "of another", "mcp__github2__create": "of another",
		"mcp_github2_create": "of another", "github2.create": "of another", "github_enterprise.create": "of another",
		"github-enterprise.create": "of another", "github2": "of another", "mcp__github": "of another",
		"mcp_ductor_send_file": "of another", "ductor-ask_user": "of another", "Bash": "of another", "": "of another",
		"mcp_github_enterprise_create": "of one of them", "mcp__github__x__create": "of one of them",
		"mcp__github___create": "of one of them", "github-create": "of one of them",
		"github-enterprise-create": "of one of them", "github__create": "of one of them",
	} {
		for list, states := range map[*ToolList][3]bool{ // whether the tool is of it, of another, or of one of them
			&denied: {false, true, false}, &only: {true, false, false},
		} {
			state := map[string]int{"of it": 0, "of another": 1, "of one of them": 2}[want]
			permits, forbids := states[state], !states[state] && state < 2
			if list.Permits(tool) != permits || list.Forbids(tool) != forbids {
				t.Errorf("%q is %s; %+v permits it: %v, forbids it: %v", tool, want, *list, list.Permits(tool),
					list.Forbids(tool))
			}
		}
	}
	own := ToolList{Denied: []string{"mcp:ductor"}}
	for _, tool := range []string{"mcp_ductor_send_file", "mcp__ductor__ask_user", "ductor-ask_user"} {
		if !own.Forbids(tool) {
			t.Errorf("%s is not ductor's", tool)
		}
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
