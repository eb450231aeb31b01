package sub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"ductor/internal/config"
)

// ErrNewer reports that a newer release is available.
var ErrNewer = errors.New("a newer release is available")

// Upgrade returns the command that compares this version with the latest release. It neither downloads nor installs the
// release.
func Upgrade(from Source, version string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "upgrade --check", Short: "Check for a newer release", Args: cobra.NoArgs,
		Long: "Ask the address in upgrade.url for the latest release and compare it with this version. Nothing is " +
			"downloaded or\n" +
			"installed. The exit code is 6 if there is a newer release, and 0 if not or if upgrade.url is not set.",
	}
	check := cmd.Flags().Bool("check", false, "compare this version with the latest release")
	return withConfig(from.forParts("upgrade"), cmd, func(cmd *cobra.Command, cfg config.Config, _ []string) error {
		switch {
		case !*check:
			return errors.New("ductor does not replace itself; add --check, and see docs/install.md for an upgrade")
		case cfg.Upgrade.URL == "":
			fmt.Fprintf(cmd.OutOrStdout(), "this is ductor %s; set upgrade.url to the address that names the latest "+
				"release, and this compares them\n", version)
			return nil
		}
		latest, err := latestRelease(cmd.Context(), cfg.Upgrade.URL)
		if err != nil {
			return fmt.Errorf("ask %s for the latest release: %w", cfg.Upgrade.URL, err)
		}
		return compareReleases(cmd.OutOrStdout(), version, latest)
	})
}

// compareReleases prints whether this version is older than the latest version. If it is older, compareReleases returns
// ErrNewer.
func compareReleases(out io.Writer, version, latest string) error {
	own := strings.TrimPrefix(release().FindString(version), "v")
	order := semver.Compare("v"+own, "v"+latest)
	switch {
	case own == "":
		fmt.Fprintf(out, "this is ductor %s, which is no release; the latest release is %s\n", version, latest)
	case order < 0:
		fmt.Fprintf(out, "this is ductor %s; the latest release is %s\n", own, latest)
		return ErrNewer
	default:
		fmt.Fprintf(out, "this is ductor %s; it is up to date, the latest release is %s\n", own, latest)
	}
	return nil
}

const (
	upgradeWait  = 15 * time.Second
	upgradeBytes = 1 << 20 // maximum size of a response
)

// release matches the version of a release, as semver.org defines it.
var release = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(-[0-9A-Za-z.-]{1,60})?(\+[0-9A-Za-z.-]{1,60})?\b`)
})

// latestRelease fetches the number of the latest version. The server answers with a JSON object that has a tag_name, or
// with a text that begins with the version number.
func latestRelease(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, upgradeWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", errors.New("the server answers " + strconv.Itoa(resp.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, upgradeBytes))
	if err != nil {
		return "", err
	}
	var object struct {
		Tag string `json:"tag_name"`
	}
	named := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &object) == nil {
		named = object.Tag
	}
	latest := release().FindString(named)
	if latest == "" {
		return "", errors.New("the answer contains no version")
	}
	return strings.TrimPrefix(latest, "v"), nil
}
