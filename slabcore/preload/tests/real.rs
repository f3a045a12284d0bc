//! Real programs write the same with the library as without, and nothing is reported.
//! The long version, with their own test suites, is `real-programs.sh`.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{FULL, POLICIES, is_there, run, run_bare};

/// A program and its arguments; `{}` stands for a new, empty folder.
struct Case {
    name: &'static str,
    /// What must be there.
    needs: &'static str,
    script: &'static str,
}

const CASES: [Case; 6] = [
    Case {
        name: "shell",
        needs: "sh",
        script: r#"
            i=0; text=
            while [ $i -lt 200 ]; do text="$text $((i * i))"; i=$((i + 1)); done
            for word in $text; do echo "$word"; done | sort -n | sed 's/1/one/g' | tail -20
            trap 'echo trapped' USR1; kill -USR1 $$; echo "${text%% 100*}"
        "#,
    },
    Case {
        name: "git",
        needs: "git",
        script: r#"
            export GIT_CONFIG_NOSYSTEM=1 HOME=. GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
            export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
            git init -q -b main .
            i=0
            while [ $i -lt 4 ]; do
                seq $i $((i * 300 + 50)) >"file$((i % 5))"
                git add . && git commit -q -m "change $i"
                i=$((i + 1))
            done
            git repack -adq --threads=2 && git fsck --full --strict 2>&1
            git log --stat | head -50; git diff HEAD~2 | tail -5; git blame file1 | tail -3
        "#,
    },
    Case {
        name: "python",
        needs: "python3",
        script: r#"
            "$(python3 -c 'import sys; print(sys.executable)')" -S - <<'END'
import json, re, threading, zlib
def work(n):
    table = {str(i): [i] * (i % 17) for i in range(n)}
    text = json.dumps(table, sort_keys=True)
    assert json.loads(text) == table
    results.append((n, zlib.crc32(text.encode()), len(re.findall("1+", text))))
results = []
threads = [threading.Thread(target=work, args=(n,)) for n in (10, 500, 2000)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(results))
END
        "#,
    },
    Case {
        name: "sqlite",
        needs: "sqlite3",
        script: r"
            sqlite3 file.db <<'END'
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
insert into t select i, hex(i * i) || printf('%.*c', i % 200, 'x'), i / 7.0 from n;
create index tb on t(b);
delete from t where a % 3 = 0;
update t set b = b || a where a % 5 = 0;
vacuum;
pragma integrity_check;
select count(*), sum(length(b)), round(sum(c), 3) from t;
END
        ",
    },
    Case {
        name: "redis",
        needs: "redis-server",
        script: r#"
            redis-server --port 0 --unixsocket "$PWD/s" --save '' --appendonly no --enable-debug-command local >log &
            until redis-cli -s s ping 2>&1 | grep -q PONG; do sleep 0.05; done
            redis-benchmark -s s -q -n 100 -P 8 -c 10 -d 200 -t set,incr,lpush,sadd,hset,zadd,mset >log2
            redis-cli -s s eval "
                for i = 1, 2000 do
                    redis.call('set', 'k' .. i, string.rep('x', i % 300))
                    redis.call('lpush', 'l' .. i % 7, i)
                    redis.call('hset', 'h' .. i % 5, i, i * i)
                end
                return redis.call('dbsize')" 0
            redis-cli -s s debug reload; redis-cli -s s debug digest; redis-cli -s s flushall
            redis-cli -s s shutdown nosave; wait; ! grep -i 'crashed' log
        "#,
    },
    Case {
        name: "compiler",
        needs: "cc",
        script: r#"
            cat >program.c <<'END'
#include <stdio.h>
#include <stdlib.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
    int *all = malloc(1000 * sizeof *all);
    for (int i = 0; i < 1000; i++) all[i] = i * 7919 % 1000;
    qsort(all, 1000, sizeof *all, compare);
    printf("%d %d\n", all[0], all[999]);
    free(all);
}
END
            cc -O2 -S -o - program.c; cc -O1 program.c -o program && ./program
        "#,
    },
];

/// Runs a script in a new folder.
fn shell(case: &Case, variables: Option<&[(&str, &str)]>) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(case.script)
        .current_dir(folder.path());
    let ran = match variables {
        Some(variables) => run(&mut command, variables),
        None => run_bare(&mut command, &[]),
    };
    assert!(ran.status.success(), "{} {variables:?} {ran:?}", case.name);
    (ran.out, ran.err)
}

#[test]
fn programs_write_the_same_with_every_policy_and_debugged() {
    for case in CASES.iter().filter(|case| is_there(case.needs)) {
        let bare = shell(case, None);
        assert!(!bare.0.is_empty(), "{}", case.name);
        for policy in POLICIES {
            let with = shell(case, Some(&[("SLABCORE_POLICY", policy)]));
            assert_eq!(with, bare, "{} {policy}", case.name);
        }
        let with = shell(case, Some(&[FULL]));
        assert_eq!(with, bare, "{} debugged", case.name);
    }
}

/// A report in a file, which is not followed if it is a link, and is for its owner only.
#[test]
fn reports_go_to_a_file_that_is_no_link() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let overflow = |log: &Path| {
        let variables = [FULL, ("SLABCORE_LOG", log.to_str().unwrap())];
        let ran = run(
            Command::new(support::program("faults")).arg("overflow"),
            &variables,
        );
        assert!(ran.status.success(), "{ran:?}");
        ran.err
    };
    assert_eq!(overflow(&at("log")), "");
    assert_eq!(overflow(&at("log")), "");
    let text = std::fs::read_to_string(at("log")).unwrap();
    assert_eq!(
        text.matches("\nBUG kmalloc-48").count(),
        2,
        "appended: {text}"
    );
    assert_eq!(
        at("log").metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    std::fs::write(at("target"), "").unwrap();
    std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
    std::fs::hard_link(at("target"), at("hard")).unwrap();
    for refused in [at("link"), at("hard"), at("none/log"), at(".")] {
        assert!(
            overflow(&refused).contains("\nBUG kmalloc-48"),
            "{}",
            refused.display()
        );
    }
    assert_eq!(std::fs::read_to_string(at("target")).unwrap(), "");
}

/// What the environment says wrong is told in a line, and the program runs.
#[test]
fn a_broken_choice_is_told_in_one_line() {
    let variables = [("SLABCORE_POLICY", "fast\n\u{7}"), ("SLABCORE_DEBUGS", "F")];
    let mut command = Command::new("/bin/sh");
    let ran = run(command.args(["-c", "echo works"]), &variables);
    assert_eq!(ran.out, "works\n");
    let mut lines: Vec<_> = ran.err.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("slabcore: SLABCORE_DEBUGS=F is not known"),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("slabcore: SLABCORE_POLICY=fast?? is no policy"),
        "{lines:?}"
    );
    let ran = run(
        Command::new("/bin/true").arg("x"),
        &[("SLABCORE_HELP", "1")],
    );
    assert!(
        ran.err.lines().count() > 10 && ran.err.contains("SLABCORE_SAMPLE"),
        "{ran:?}"
    );
}

/// A limit makes allocations fail as C says, not the program.
#[test]
fn a_limit_gives_null() {
    let output = quiet_limit("24M");
    assert_eq!(output, "all right\n");
}

fn quiet_limit(limit: &str) -> String {
    support::quiet("limit", &[], &[("SLABCORE_LIMIT", limit)])
}
