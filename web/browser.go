package web

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
)

// OpenBrowser has the user's browser open an address. The address holds a token, so it does not appear among the
// arguments of a program, where every user of the machine reads it: it goes through a private file in dir, which the
// caller removes. false if the session has no screen or no program to open addresses with.
func OpenBrowser(address, dir string) (bool, error) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return false, nil
	}
	opener, err := exec.LookPath("xdg-open")
	if err != nil {
		return false, nil
	}
	path := filepath.Join(dir, "open.html")
	if err := os.WriteFile(path, fmt.Appendf(nil, entrance, html.EscapeString(address)), 0o600); err != nil {
		return false, fmt.Errorf("write the file that leads to the page: %w", err)
	}
	cmd := exec.Command(opener, path)
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("open a browser: %w", err)
	}
	// It may stay as long as the browser does.
	if err := cmd.Process.Release(); err != nil {
		return false, fmt.Errorf("open a browser: %w", err)
	}
	return true, nil
}
