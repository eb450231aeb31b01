package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// projectLeaves returns the values that users see of a settings file. Any change of the file changes the values. named is
// true if ProjectReader.ProjectFiles contains the file itself, and not only its directory.
func projectLeaves(text []byte, name string, named bool) []Leaf {
	extension := projectExtension(name)
	switch {
	case extension == ".env":
		return envLeaves(text)
	case extension == ".json", extension == ".jsonc":
		return wholeLeaves(text)
	case extension == ".md":
		return append(markdownLeaves(text), digestLeaf(text))
	case extension == ".toml", extension == ".rules",
		!holdsSecrets(name) && (named || slices.Contains(settingsExtensions(), extension)):
		leaves := []Leaf{{Value: strings.ToValidUTF8(string(text), "\ufffd")}}
		if !utf8.Valid(text) {
			leaves = append(leaves, digestLeaf(text))
		}
		return leaves
	}
	return []Leaf{digestLeaf(text)}
}

func projectExtension(name string) string { return strings.ToLower(path.Ext(name)) }

// settingsExtensions lists the formats, besides JSON and Markdown, that agents read as settings from any file of a
// directory. All other files of a directory, such as scripts and licences, only take effect if a setting names them.
func settingsExtensions() []string { return []string{".toml", ".yaml", ".yml", ".rules"} }

// holdsSecrets reports whether a file usually contains secrets of a project, such as keys. The card must not show such a
// file to a group.
func holdsSecrets(name string) bool {
	base := strings.ToLower(path.Base(name))
	return strings.HasPrefix(base, ".env.") || strings.HasPrefix(base, "credentials") ||
		slices.Contains([]string{".npmrc", ".netrc", ".pypirc"}, base) ||
		slices.Contains([]string{".pem", ".key", ".p12"}, path.Ext(base))
}

// serverLikeOwn searches a settings file for names of MCP servers. It returns the first name for which LikeOwnServer
// returns true, or "" if there is no such name. If it cannot parse the file, it returns a word of the file that looks
// like such a name.
func serverLikeOwn(text []byte, extension string) string {
	raw, plain := text, text
	switch extension {
	case ".json", ".jsonc":
		plain = PlainJSON(text)
	case ".md":
		front, ok := bytes.CutPrefix(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), []byte("---"))
		if !ok {
			return ""
		}
		raw, _, _ = bytes.Cut(front, []byte("\n---"))
		plain = yamlAsJSON(raw)
	case ".toml", ".yaml", ".yml":
	default:
		return ""
	}
	var settings any
	if json.Unmarshal(plain, &settings) == nil {
		return keyLikeOwnServer(settings, false)
	}
	return string(wordLikeOwnServer().Find(raw))
}

// wordLikeOwnServer matches words for which LikeOwnServer may return true. It matches neither paths nor the word
// "ductor" alone.
var wordLikeOwnServer = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bductor[^A-Za-z0-9\s"'` + "`" + `\]\[(){}<>=:;,./\\]\w*`)
})

// keyLikeOwnServer searches a JSON value for names of MCP servers. It returns the first name for which LikeOwnServer
// returns true, or "" if there is no such name. inServers must be true if the value describes MCP servers. Then its
// keys and its fields "name" are names of servers.
func keyLikeOwnServer(value any, inServers bool) string {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if inServers && LikeOwnServer(key) {
				return key
			}
			if name, is := value[key].(string); is && inServers && key == "name" && LikeOwnServer(name) {
				return name
			}
			servers := strings.Contains(strings.ToLower(key), "mcp") || key == "servers"
			if found := keyLikeOwnServer(value[key], servers); found != "" {
				return found
			}
		}
	case []any:
		for _, element := range value {
			if found := keyLikeOwnServer(element, inServers); found != "" {
				return found
			}
		}
	}
	return ""
}

// digestLeaf returns a leaf with the size and the hash of a text. The hash reveals changes of a file that users do not
// see in full.
func digestLeaf(text []byte) Leaf {
	return Leaf{Value: fmt.Sprintf("%d bytes, sha256 %x", len(text), sha256.Sum256(text))}
}

// wholeLeaves returns the values of a JSON text. It returns text that is not valid JSON, such as JSON with comments, as
// one value.
func wholeLeaves(text []byte) []Leaf {
	leaves := Leaves(text)
	for i, l := range leaves {
		if l.Name == wholeInputName {
			leaves[i].Name = ""
		}
	}
	return leaves
}

// markdownLeaves returns the values of a Markdown file's front matter, and the commands that an agent runs when it
// reads the file. It returns front matter that is not valid YAML as one value.
func markdownLeaves(text []byte) []Leaf {
	var leaves []Leaf
	trimmed := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if rest, ok := bytes.CutPrefix(trimmed, []byte("---")); ok {
		head, _, _ := bytes.Cut(rest, []byte("\n---"))
		leaves = wholeLeaves(yamlAsJSON(head))
	}
	for _, command := range ShellCommands(string(text)) {
		leaves = append(leaves, Leaf{Name: "runs", Value: command})
	}
	return leaves
}

// The starts of shell commands in Markdown: those of Claude, and those of any agent.
var (
	claudeStart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("```!|!`") })
	shellStart  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("```!|!`|!\\{") })
)

// ShellCommands returns the shell commands in a Markdown file that run as soon as an agent reads the file, such as a
// skill. There are three forms: !`command`, a block that starts with ```!, and !{command}.
//
// Agents disagree about where a command starts and ends. If a command has no end, is empty, or overlaps with the start
// of another one, ShellCommands returns the whole text as the only command.
func ShellCommands(text string) (all []string) { return commandsFrom(text, shellStart()) }

// ClaudeCommands is like ShellCommands, for a skill that Claude uses. Claude does not run !{command}, which also occurs
// in other languages, such as html!{…} in Rust.
func ClaudeCommands(text string) (all []string) { return commandsFrom(text, claudeStart()) }

func commandsFrom(text string, pattern *regexp.Regexp) (all []string) {
	for i := 0; ; {
		start := pattern.FindStringIndex(text[i:])
		if start == nil {
			return all
		}
		begin := i + start[1]
		length, end := shellEnd(text[begin:], text[i+start[0]:begin])
		if length <= 0 {
			return []string{text}
		}
		// The last bytes of the end may be the first bytes of another start.
		beyond := text[i+start[0]+1 : min(end+begin+len("```!")-1, len(text))]
		if next := pattern.FindStringIndex(beyond); next != nil && i+start[0]+1+next[0] < begin+end {
			return []string{text}
		}
		all = append(all, strings.TrimSpace(text[begin:begin+length]))
		i = begin + end
	}
}

// shellEnd returns the length of the command at the beginning of a text, and the index after the sign that ends the
// command. It returns -1 as the length if there is no such sign.
func shellEnd(text, start string) (length, end int) {
	mark := "`"
	switch start {
	case "!{":
		depth := 1
		for i, c := range []byte(text) {
			switch c {
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth == 0 {
				return i, i + 1
			}
		}
		return -1, 0
	case "```!":
		mark = "```"
	}
	length = strings.Index(text, mark)
	return length, length + len(mark)
}

// yamlAsJSON converts one YAML document to JSON. It returns other text unchanged.
func yamlAsJSON(text []byte) []byte {
	var values, more any
	in := yaml.NewDecoder(bytes.NewReader(text))
	if in.Decode(&values) != nil || !errors.Is(in.Decode(&more), io.EOF) {
		return text
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return text
	}
	return raw
}

// envLeaves returns the variables of a .env file and a hash of the file. It returns nothing for a file without
// variables.
//
// For a variable that ductor does not know, envLeaves returns only the name, because the value may be a secret of the
// project. It does not omit the variable: any unknown variable may make a runtime load a file.
func envLeaves(text []byte) []Leaf {
	var leaves []Leaf
	var others []string
	for name, value := range envVariables(text) {
		if steersAgent(name) {
			leaves = append(leaves, Leaf{Name: name, Value: strings.TrimSpace(value)})
		} else {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		leaves = append(leaves, Leaf{Name: "other variables", Value: strings.Join(others, ", ")})
	}
	if len(leaves) == 0 {
		return nil
	}
	return append(leaves, digestLeaf(text))
}

// envVariables returns the names and the raw values of the variables in a .env file.
func envVariables(text []byte) iter.Seq2[string, string] {
	lineBreak := func(r rune) bool { return strings.ContainsRune("\n\r\u2028\u2029", r) }
	return func(yield func(name, value string) bool) {
		for line := range strings.FieldsFuncSeq(string(text), lineBreak) {
			if m := envLine().FindStringSubmatch(line); m != nil && !yield(m[1], m[2]) {
				return
			}
		}
	}
}

// envLine matches a line by the rules of the dotenv library, which most agents use.
var envLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\s\v\p{Z}\x{feff}]*(?:export[\s\v\p{Z}\x{feff}]+)?([\w.-]+)[\s\v\p{Z}\x{feff}]*[=:](.*)$`)
})

// steersAgent reports whether a variable is known to affect an agent, its runtime or its programs. If so, users see its
// value.
func steersAgent(name string) bool {
	upper := strings.ToUpper(name)
	prefixed := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
	return slices.ContainsFunc([]string{
		"GEMINI_", "GOOGLE_", "CODE_ASSIST_", "CLOUD_SHELL", "OTEL_", "NODE_", "SANDBOX", "BUILD_SANDBOX", "SEATBELT",
		"LD_", "DYLD_", "QWEN_",
		"GIT_", "NPM_", "BASH", "SSL_", "SSH_", "XDG_", "PYTHON", "PERL", "RUBY", "GOFLAGS", "CARGO_", "RUSTC",
		"PIP_", "LESSOPEN", "MANPAGER",
		"MAKEFLAGS", "GCE_METADATA", "CLOUDSDK_",
	}, prefixed) || strings.HasSuffix(upper, "_PROXY") || strings.HasSuffix(upper, "_OPTIONS") ||
		strings.HasSuffix(upper, "_BASE_URL") ||
		slices.Contains([]string{"PATH", "HOME", "SHELL", "EDITOR", "VISUAL", "PAGER", "BROWSER", "ENV", "IFS",
			"TMPDIR", "SHELLOPTS"}, upper)
}

// PlainJSON converts the extended JSON that agents accept in settings files to plain JSON. It removes comments of both
// kinds, and commas before a closing bracket. It does not validate the text.
func PlainJSON(raw []byte) []byte {
	var out bytes.Buffer
	comma := -1 // position in out of the last comma; -1 if other text follows the comma
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			end := stringEnd(raw, i)
			out.Write(raw[i:end])
			i, comma = end, -1
			continue
		case c == '/' && i+1 < len(raw) && (raw[i+1] == '/' || raw[i+1] == '*'):
			i = commentEnd(raw, i)
			continue
		case c == ',':
			comma = out.Len()
		case (c == '}' || c == ']') && comma >= 0:
			out.Bytes()[comma] = ' '
			comma = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
		out.WriteByte(raw[i])
		i++
	}
	return out.Bytes()
}

// stringEnd returns the index after the string that starts at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// commentEnd returns the index after the comment that starts at i. The line break after a line comment is not part of
// the comment.
func commentEnd(raw []byte, i int) int {
	end, length := []byte("\n"), 0
	if raw[i+1] == '*' {
		end, length = []byte("*/"), 2
	}
	if at := bytes.Index(raw[i+2:], end); at >= 0 {
		return i + 2 + at + length
	}
	return len(raw)
}
