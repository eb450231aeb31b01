package sub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ductor/internal/app"
	"ductor/internal/backup"
	"ductor/internal/config"
)

// Backup returns the command that writes an archive of ductor's state.
func Backup(from Source, version string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "backup [FILE]", Short: "Back up ductor's state into an archive (works while ductor runs)",
		Args: cobra.MaximumNArgs(1),
		Long: "Write the database, files that users sent, and files waiting to be sent into an archive that only " +
			"your user\n" +
			"can read. --with-secrets adds the configuration with its token, stored API keys, and the home " +
			"directories of\n" +
			"sessions with their logins.",
	}
	secrets := cmd.Flags().Bool("with-secrets", false,
		"include the configuration with the token, API keys, and logins of sessions")
	load := from(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		parts := []string{"storage"}
		if *secrets {
			parts = append(parts, "telegram.token_file")
		}
		cfg, err := load(parts...)
		if err != nil {
			return err
		}
		contents := app.BackupContents(cfg)
		contents.Version = version
		if *secrets {
			app.AddSecrets(&contents, cfg)
		}
		target := archiveName(args)
		m, err := backup.Write(cmd.Context(), target, contents)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w; name another file", err)
		}
		if err != nil {
			return err
		}
		return describeArchive(cmd.OutOrStdout(), target, m, *secrets)
	}
	return cmd
}

// archiveName returns the path of the archive that the arguments name. Without an argument, or if the argument is a
// directory, the name of the archive contains the current time. An argument with a slash at its end counts as a
// directory, even if it does not exist.
func archiveName(args []string) string {
	named := "ductor-" + time.Now().Format("20060102-150405") + ".tar.gz"
	if len(args) == 0 {
		return named
	}
	if info, err := os.Stat(args[0]); err == nil && info.IsDir() || strings.HasSuffix(args[0], "/") {
		return filepath.Join(args[0], named)
	}
	return args[0]
}

func describeArchive(out io.Writer, name string, m backup.Manifest, secrets bool) error {
	var size int64
	for _, e := range m.Entries {
		size += e.Size
	}
	more := "without token, keys and log-ins"
	if secrets {
		more = "with token, keys and log-ins: keep it as safe as a password"
	}
	files := fmt.Sprintf("%d files", len(m.Entries))
	if len(m.Entries) == 1 {
		files = "1 file"
	}
	_, err := fmt.Fprintf(out, "%s: %s (%d KB), checked; %s\n", name, files, size>>10, more)
	return err
}

// Restore returns the command that restores an archive.
func Restore(from Source) *cobra.Command {
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Check a backup and restore the state from it",
		Args: cobra.ExactArgs(1),
		Long: "Check the archive and its database, then restore them into the state directory. Stop ductor first.\n" +
			"If there is state already, nothing is restored, unless --force moves it into a directory next to the " +
			"new one.",
	}
	force := cmd.Flags().Bool("force", false, "move existing state into a directory next to the new one")
	load := from.forParts("storage")(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m, other, err := backup.Verify(args[0])
		if err != nil {
			return err
		}
		r := restore{out: cmd.OutOrStdout(), archive: args[0], existing: backup.Refuse, made: &madeFiles{}}
		if *force {
			r.existing = backup.Aside
		}
		path := cmp.Or(cmd.Flag("config").Value.String(), "config.toml")
		cfg, err := load()
		if errors.Is(err, fs.ErrNotExist) {
			cfg, err = r.configuration(path, m, other, load)
		}
		if err == nil {
			err = r.run(cmd.Context(), cfg)
		}
		if err != nil {
			r.made.remove()
			return err
		}
		for _, name := range r.made.files {
			fmt.Fprintf(r.out, "wrote %s\n", name)
		}
		return nil
	}
	return cmd
}

type restore struct {
	out      io.Writer
	archive  string
	existing backup.Existing
	made     *madeFiles
}

// configuration copies the configuration from the archive to path, and loads it. If the archive contains no
// configuration, it returns the default configuration.
func (r restore) configuration(path string, m backup.Manifest, other map[string][]byte,
	load func(...string) (config.Config, error)) (config.Config, error) {
	if _, ok := other[app.BackupConfigName]; !ok {
		fmt.Fprintf(r.out, "no configuration exists at %s or in the archive: write one before you start ductor\n", path)
		return config.Default(), nil
	}
	for _, f := range m.Paths {
		if f.Name == app.BackupConfigName {
			f.Path = path
		}
		if err := r.made.write(f.Path, other[f.Name]); err != nil {
			return config.Config{}, fmt.Errorf("restore %s: %w", f.Name, err)
		}
	}
	return load()
}

// madeFiles records which files and directories a restore has created, to delete them if the restore fails.
type madeFiles struct{ dirs, files []string }

func (m *madeFiles) mkdir(dir string) error {
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, at)
	}
	slices.Reverse(missing)
	m.dirs = append(m.dirs, missing...)
	return os.MkdirAll(dir, 0o700)
}

// remove deletes everything that the restore created. A directory that contains other files stays.
func (m *madeFiles) remove() {
	for _, name := range m.files {
		_ = os.Remove(name)
	}
	for _, dir := range slices.Backward(m.dirs) {
		_ = os.Remove(filepath.Join(dir, app.StorageLock))
		_ = os.Remove(dir)
	}
}

// write creates a file that only this user can read. If the file exists, it does nothing.
func (m *madeFiles) write(path string, text []byte) error {
	if err := m.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m.files = append(m.files, path)
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func (r restore) run(ctx context.Context, cfg config.Config) error {
	if err := r.made.mkdir(cfg.Storage.Dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	release, err := app.LockStorage(cfg.Storage.Dir)
	if err != nil {
		return err
	}
	defer release()
	m, aside, err := backup.Restore(ctx, r.archive,
		backup.Target{State: cfg.Storage.Dir, Database: app.DatabaseFile, Existing: r.existing})
	if errors.Is(err, backup.ErrInUse) {
		return fmt.Errorf("%w; --force moves it aside first", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "restored the state of %s (ductor %s) into %s\n", m.Made.Local().Format(time.DateTime),
		m.Version, cfg.Storage.Dir)
	if aside != "" {
		fmt.Fprintf(r.out, "the previous state is in %s\n", aside)
	}
	if m.State != cfg.Storage.Dir {
		fmt.Fprintf(r.out, "the backup is from %s: waiting prompts will not find files that users sent there\n",
			m.State)
	}
	return nil
}
