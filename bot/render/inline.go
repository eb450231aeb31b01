package render

import (
	"bytes"
	"html"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

var lineBreak = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^<br\s*/?>$`) })

func (r *renderer) inlines(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		r.inline(c)
	}
}

func (r *renderer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		r.text(n)
	case *ast.CodeSpan:
		r.out.raw(Code, "", r.codeSpan(n))
	case *ast.Emphasis:
		r.styled(n, []Kind{Italic, Bold}[n.Level-1])
	case *extast.Strikethrough:
		r.styled(n, Strikethrough)
	case *ast.Link:
		r.link(n)
	case *ast.Image:
		r.image(n)
	case *ast.AutoLink:
		r.out.write(string(n.Label(r.source)))
	case *ast.RawHTML:
		r.html(n)
	case *fileMark:
		r.out.write(n.shown())
	case *taskBox:
		if n.done {
			r.out.write("☑")
		} else {
			r.out.write("☐")
		}
	default:
		r.inlines(n)
	}
}

func (r *renderer) styled(n ast.Node, kind Kind) {
	r.out.begin(kind, "")
	r.inlines(n)
	r.out.end()
}

func (r *renderer) text(n *ast.Text) {
	value := n.Segment.Value(r.source)
	if n.IsRaw() {
		r.out.write(string(value))
	} else {
		r.out.write(unescape(value))
	}
	if n.SoftLineBreak() || n.HardLineBreak() {
		r.lineBreak()
	}
}

func (r *renderer) lineBreak() {
	r.out.write("\n")
	r.out.write(r.indent)
}

func (r *renderer) codeSpan(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(r.source))
		}
	}
	code := strings.ReplaceAll(b.String(), "\n", " ")
	if r.inCell {
		code = strings.ReplaceAll(code, `\|`, "|")
	}
	return code
}

func (r *renderer) html(n *ast.RawHTML) {
	var b strings.Builder
	for i := range n.Segments.Len() {
		s := n.Segments.At(i)
		b.Write(s.Value(r.source))
	}
	if lineBreak().MatchString(b.String()) {
		r.lineBreak()
		return
	}
	r.out.write(b.String())
}

// link writes a link. If Telegram does not accept the address, link writes "label (address)".
func (r *renderer) link(n *ast.Link) {
	address := unescape(n.Destination)
	if r.out.count.links == 0 && linkable(address) {
		from := len(r.out.buf)
		r.out.begin(Link, address)
		r.inlines(n)
		if IsBlank(string(r.out.buf[from:])) {
			r.out.write(address)
		}
		r.out.end()
		r.title(n.Title)
		return
	}
	r.labelled(n, address, n.Title)
}

func (r *renderer) image(n *ast.Image) { r.labelled(n, unescape(n.Destination), n.Title) }

// labelled writes "label (address)". If label and address are equal, or one is empty, labelled writes only one of them.
func (r *renderer) labelled(n ast.Node, address string, title []byte) {
	from := len(r.out.buf)
	r.inlines(n)
	label := string(r.out.buf[from:])
	switch {
	case address == "" || label == address:
	case IsBlank(label):
		r.out.write(address)
	default:
		r.out.write(" (" + address + ")")
	}
	r.title(title)
}

func (r *renderer) title(title []byte) {
	if t := strings.TrimSpace(unescape(title)); t != "" {
		r.out.write(" (" + t + ")")
	}
}

// unescape replaces backslash escapes and HTML character references such as &amp;.
func unescape(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b, '&') < 0 {
		return string(b)
	}
	var out strings.Builder
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\\' && i+1 < len(b) && util.IsPunct(b[i+1]):
			i++
			out.WriteByte(b[i])
		case b[i] == '&':
			s, n := reference(b[i:])
			out.WriteString(s)
			i += n - 1
		default:
			out.WriteByte(b[i])
		}
	}
	return out.String()
}

// reference parses an HTML character reference at the start of b. It returns the character and the length of the
// reference. If the & at the start of b does not begin a reference, it returns the &.
func reference(b []byte) (string, int) {
	const longest = 33
	end := bytes.IndexByte(b[:min(len(b), longest)], ';')
	if end < 2 {
		return "&", 1
	}
	ref := string(b[:end+1])
	if b[1] != '#' {
		if _, ok := util.LookUpHTML5EntityByName(ref[1:end]); !ok {
			return "&", 1
		}
	}
	if s := html.UnescapeString(ref); s != ref && !strings.HasSuffix(s, ";") {
		return s, end + 1
	}
	return "&", 1
}

// longestURL is the maximum length of the address of a link. Longer addresses are shown as text, because the request
// for a message with many of them could become too large.
const longestURL = 1024

// linkable reports whether Telegram accepts raw as the address of a link. It must be an http or https address whose
// host contains a dot, or a tg address. Mail addresses are not linkable, because Telegram would turn such a link into a
// web address. In plain text, Telegram recognizes mail addresses itself.
func linkable(raw string) bool {
	if raw == "" || len(raw) > longestURL || !isClean(raw) || strings.ContainsAny(raw, " \n\\<>\"^`{}|") {
		return false
	}
	u, err := url.Parse(raw)
	if err != nil || u.User != nil {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return validHost(u.Hostname())
	case "tg":
		return u.Host != "" && validLabel(u.Host)
	}
	return false
}

func validHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Zone() == ""
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, l := range labels {
		if !validLabel(l) {
			return false
		}
	}
	return len(labels) > 1 && len(host) <= 253
}

func validLabel(l string) bool {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for _, r := range l {
		if !wordRune(r) && r != '-' && r != '_' {
			return false
		}
	}
	return true
}
