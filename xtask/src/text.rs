//! Text of the header: comments, and declarations with their comments beside them.

/// Longest line.
const WIDTH: usize = 100;

/// Breaks text into lines of at most `width`. Blank lines part paragraphs; fenced blocks stay as they are.
pub(crate) fn wrap(text: &[String], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut fenced = false;
    for source in text {
        let trimmed = source.trim_end();
        if trimmed.trim_start().starts_with("```") {
            flush(&mut lines, &mut line);
            fenced = !fenced;
        } else if fenced {
            lines.push(format!("    {trimmed}"));
        } else if trimmed.trim().is_empty() {
            flush(&mut lines, &mut line);
            lines.push(String::new());
        } else {
            if trimmed.trim_start().starts_with("- ") {
                flush(&mut lines, &mut line);
            }
            for word in trimmed.split_whitespace() {
                if !line.is_empty() && line.len() + 1 + word.len() > width {
                    flush(&mut lines, &mut line);
                }
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
    }
    flush(&mut lines, &mut line);
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn flush(lines: &mut Vec<String>, line: &mut String) {
    if !line.is_empty() {
        lines.push(core::mem::take(line));
    }
}

/// A comment of its own lines.
pub(crate) fn comment(text: &[String], indent: &str) -> String {
    let lines = wrap(text, WIDTH - 3 - indent.len());
    match lines.as_slice() {
        [] => String::new(),
        [one] if one.len() + indent.len() + 6 <= WIDTH => format!("{indent}/* {one} */\n"),
        many => {
            let body: String =
                many.iter().map(|line| format!("{indent} * {line}").trim_end().to_owned() + "\n").collect();
            format!("{indent}/*\n{body}{indent} */\n")
        }
    }
}

/// Declarations, each with its comment beside it.
pub(crate) fn aligned(items: &[(Vec<String>, String)], indent: &str) -> String {
    let widest = items.iter().map(|(_, code)| code.len()).max().unwrap_or(0);
    let room = WIDTH.saturating_sub(indent.len() + widest + 7);
    let mut out = String::new();
    for (doc, code) in items {
        let lines = wrap(doc, room);
        let Some((first, rest)) = lines.split_first() else {
            out.push_str(&format!("{indent}{code}\n"));
            continue;
        };
        out.push_str(&format!("{indent}{code:widest$} /* {first}"));
        for line in rest {
            out.push_str(&format!("\n{indent}{:widest$}  * {line}", ""));
        }
        out.push_str(" */\n");
    }
    out
}

/// A function's declaration, on one line or with its parameters filled into several.
pub(crate) fn signature(code: &[String]) -> String {
    let words: Vec<&str> = code.iter().flat_map(|line| line.split_whitespace()).collect();
    let whole = words.join(" ").replace("struct kvf_", "kvf_");
    let Some(open) = whole.find('(').filter(|_| whole.len() > WIDTH) else { return whole + "\n" };
    let (head, parameters) = whole.split_at(open + 1);
    let indent = " ".repeat(head.len());
    let (mut out, mut line) = (String::new(), head.to_owned());
    for parameter in parameters.split(", ") {
        let end = if parameter.ends_with(';') { "" } else { "," };
        if line.len() > indent.len() && line.len() + parameter.len() + 2 > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line.clone_from(&indent);
        }
        line.push_str(parameter);
        line.push_str(end);
        if !end.is_empty() {
            line.push(' ');
        }
    }
    out + line.trim_end() + "\n"
}
