#!/usr/bin/env python3
"""Every rule of TOML 1.0, as texts that are right and texts that are wrong: we say so, and Python's tomllib agrees, with the same values."""
import os, sys

sys.path.insert(0, os.path.join(os.environ["STET_SOURCE"], "test"))
import toml_oracle

Q3, A3 = '"""', "'''"
GROUPS = {}  # name: (valid texts, invalid texts)

GROUPS["documents and comments"] = (
    ["", "\n", "\r\n", " \t \n", "#", "# c", "# c\n", "#\t\n", "a=1#c", "a=1 # c\n", "# ä ☃ 😀 \u0080\u009f", "a=1\r\nb=2\r\n", "\n\n\ta = 1\n\n", "a=1", "  # c\r\n  a=1",
     "[a]#c", "[a] # c\r\n", "#'\"[{", "a=1\n#"],
    ["# \0", "# \x01", "# \x08", "# \x0b", "# \x1f", "# \x7f", "# \r", "# a\rb\n", "\r", "a=1\r", "a=1\rb=2", "\r\r\n", "a=1 b=2", "a", "a=", "=1", "= ", "a==1", "a = = 1", "a\n=1", "a=\n1",
     "a=1,", "a 1", "a:1", "a=#1", "\x0c", "\u00a0", "a\u3000=1", "{}", "1", "]", "[", "\ufeff\ufeff", "//", "a=1;b=2", "a=1 \x01", "\x01a=1", "a=\x01"])
GROUPS["keys"] = (
    ["a=1", "A=1", "1=1", "1234=1", "-=1", "_=1", "a-b_c=1", "-1=1", "0x1=1", "true=1", "inf=1", "''=1", '""=1', "'a b'=1", '"a.b"=1', '"ä"=1', "'ä'=1", r'"\u00e4"=1', r'"\\"=1', "'\\'=1", "a.b=1",
     "a . b=1", "a\t.\tb =1", " a . b . c = 1", "'a'.b.\"c\"=1", "3.14=1", "a.b=1\na.c=2", "a.b.c=1\na.d=2\na.b.e=3", "''.''=1", "a.''=1", "2024-01-01=1", "a.b=1\n'a'.c=2", r'"\t\n\"\U0001F600"=1',
     "\"'\"=1", "'\"'=1", '"#"=1', "a.\"b\" = 1", "1.2.3=4", "a=1\nA=2", '"\t"=1', "a.b=1\nc.b=1"],
    [".a=1", "a.=1", "a..b=1", ".=1", "a b=1", "ä=1", "a.ä=1", "a!=1", "a@b=1", "'a=1", '"a=1', "'a'b=1", "a'b'=1", '"a\nb"=1', "'a\nb'=1", Q3 + "a" + Q3 + "=1", A3 + "a" + A3 + "=1", Q3 * 2 + "=1", r'"\x41"=1',
     r'"\u12"=1', r'"\ud800"=1', "a=1\na=2", "a=1\n'a'=2", "a=1\n\"a\"=2", "a=1\n\"\\u0061\"=2", "a=1\na.b=2", "a.b=1\na=2", "a.b=1\na.b=2", "a.b=1\na.b.c=2", "a.b.c=1\na.b=2", "'a\x01'=1", "\"a\x7f\"=1", "a\\u0041=1",
     "\"\"\"\"=1", "a.\nb=1", "a\n.b=1", "+a=1", "a+=1", "*=1", "a[0]=1", "a=1\n=2", "'a'.=1"])
GROUPS["basic strings"] = (
    ['a=""', 'a="x"', 'a="ä☃😀"', r'a="\b\t\n\f\r\"\\"', r'a="\u0000"', r'a="\u00E9\u00e9"', r'a="\U0001F600"', r'a="\U0010ffff"', r'a="\ud7ff\ue000"', 'a="\t"', "a=\"'\"", 'a="#"', 'a="\u0080\u009f\ufeff"', r'a="\u007f"',
     r'a="\\u0041"', 'a="x" # "y"', "a=\"\u2028\""],
    ['a="', 'a="x', 'a="x\n"', 'a="x\r\n"', 'a="\\', 'a="\\"', r'a="\a"', r'a="\e"', r'a="\x41"', r'a="\0"', r'a="\ "', r'a="\/"', 'a="\\\n"', r'a="\u"', r'a="\u123"', r'a="\u123g"', r'a="\U0000004"', r'a="\ud800"',
     r'a="\udfff"', r'a="\U00110000"', r'a="\UFFFFFFFF"', r'a="\U0000D800"', 'a="\0"', 'a="\x01"', 'a="\x1f"', 'a="\x7f"', 'a="\r"', 'a="x"y', 'a="x""y"', 'a="x" "y"', "a='x\"", r'a="\U"', 'a=“x”', r'a="\u 041"', r'a="\u+041"',
     r'a="\N"', 'a="\\\'"'])
GROUPS["multi-line basic strings"] = (
    [f"a={Q3}{Q3}", f"a={Q3}x{Q3}", f"a={Q3}\nx{Q3}", f"a={Q3}\r\nx{Q3}", f"a={Q3}\n\nx\n{Q3}", f"a={Q3}x\ny\r\nz{Q3}", f"a={Q3}x\\\n  y{Q3}", f"a={Q3}x\\  \n\n \t y{Q3}", f"a={Q3}\\\n{Q3}", f"a={Q3}\\\r\n  \r\n x{Q3}",
     f'a={Q3}"{Q3}', f'a={Q3}""x""{Q3}', f'a={Q3}x"{Q3}', f'a={Q3}x""{Q3}', f'a={Q3}""{Q3}', f'a={Q3}\\"\\"\\"{Q3}', f'a={Q3}""\\"{Q3}', f"a={Q3}'''{Q3}", f"a={Q3}\t{Q3}", f"a={Q3}#{Q3}", f"a={Q3}\\t\\u0041{Q3}",
     f"a={Q3}x\\\\\ny{Q3}", f"a={Q3}\\   \\\n\n{Q3}".replace("\\   \\", "\\"), f"a={Q3}\n\\\n\\\n{Q3}", f"a={Q3}x{Q3} # c", f"a={Q3}\n{Q3}\nb=1"],
    [f"a={Q3}", f"a={Q3}x", f'a={Q3}x"', f'a={Q3}x""', f"a={Q3}x\\ y{Q3}", f"a={Q3}\\x{Q3}", f"a={Q3}\\{Q3}", f'a={Q3}x""""""', f"a={Q3}" + '"' * 7, f"a={Q3}\0{Q3}", f"a={Q3}\x0b{Q3}", f"a={Q3}\r{Q3}", f"a={Q3}x\ry{Q3}", f"a={Q3}\x7f{Q3}",
     f"a={Q3}x{Q3}y", f"a={Q3}\\\t x{Q3}", f"a={Q3}\\\r{Q3}", f"a={Q3}x\\", f"a={Q3}x\\ ", f"a={Q3}\\ud800{Q3}", f"a={Q3}x{A3}"])
GROUPS["literal strings"] = (
    ["a=''", "a='x'", "a='\\'", "a='\\n\\u0041'", "a='\"'", "a='\t'", "a='ä😀'", "a='#'", f"a={A3}{A3}", f"a={A3}x{A3}", f"a={A3}\nx{A3}", f"a={A3}\r\nx\r\ny{A3}", f"a={A3}'{A3}", f"a={A3}''x''{A3}", f"a={A3}x'{A3}",
     f"a={A3}x''{A3}", f"a={A3}\\{A3}", f"a={A3}x\\\ny{A3}", f'a={A3}{Q3}{A3}', f"a={A3}\n\n{A3}", f"a={A3}''{A3}"],
    ["a='", "a='x", "a='x\n'", "a='\0'", "a='\x1f'", "a='\x7f'", "a='\r'", "a='it''s'", "a='x'y", f"a={A3}", f"a={A3}x''", f"a={A3}\x01{A3}", f"a={A3}\r{A3}", f"a={A3}x''''''", f"a={A3}x{A3}'''", "a=‘x’", "a='\\''"])
GROUPS["integers"] = (
    [f"a={n}" for n in ("0 +0 -0 1 +1 -1 9 10 99 1_0 1_2_3 1_000_000 -1_0 +1_0 9223372036854775807 -9223372036854775808 0x0 0x1 0xdead_beef 0xDEADBEEF 0xdeAd 0x00ff 0x7fffffffffffffff "
                        "0o0 0o7 0o755 0o0_7 0b0 0b1 0b1101_0110 0b0001 0o777777777777777777777").split()],
    [f"a={n}" for n in ("00 01 -01 +01 0_1 _1 1_ 1__0 -_1 +_1 - + ++1 --1 +-1 1a 0x 0xg 0x_1 0x1_ 0x1__1 0X1 0O1 0B1 0o 0o8 0o_7 0b 0b2 0b_1 -0x1 +0x1 -0o1 -0b1 0b1_ 1,000 1'000 ١ 0xfffg 0o1.0 0b1e1 0x1.8 1- 1+1 1-1 1_e2 1n 0d1 00x1 "
                        "1_000_ 0_0 -00").split()])
GROUPS["floats"] = (
    [f"a={n}" for n in ("0.0 +0.0 -0.0 1.0 +1.5 -1.5 3.1415 0.5 00.5".split()[:-1] + "1e1 1E1 1e+1 1e-1 1e01 1e00 0e0 5e+22 1e06 -2E-2 6.626e-34 1_0.0_1 1_0e1_0 1.5e1_0 224_617.445_991_228 0.1 1e-400 4.9e-324 1.7976931348623157e308 0.30000000000000004 "
     "9007199254740993.0 123456789.123456789 2.2250738585072014e-308 0.00000000000000000000000000001".split())],
    [f"a={n}" for n in ("1. .1 +.1 -.1 . 1.e1 1.e 1e 1e+ e1 1e1.5 1.0.0 01.0 00.1 -01.0 1_.0 1._0 1.0_ 1.0_e1 1e_1 1e1_ 1e1__0 1.0__0 _1.0 1..0 1.a 1.0f 1ee1 1e1e1 1e+-1 ١.٠ 1.-1 0_0.1 +-1.0 1.0e 1,5").split()])
GROUPS["booleans"] = (["a=true", "a=false", "a=true # c", "a=[true,false]"],
                      [f"a={n}" for n in ("True TRUE False FALSE tru fals t f truee falsey true1 true_ yes no on off null nil none undefined True# 'true\" falsetrue").split()])
DATES = ("1979-05-27T07:32:00Z 1979-05-27T07:32:00z 1979-05-27t07:32:00Z 1979-05-27T00:32:00-07:00 1979-05-27T00:32:00.999999-07:00 1979-05-27T00:32:00.1+23:59 1979-05-27T00:32:00+00:00 1979-05-27T07:32:00 1979-05-27T00:32:00.5 1979-05-27 "
         "07:32:00 00:00:00 23:59:59 00:32:00.999999 00:32:00.123456789 2000-02-29 2024-02-29 0001-01-01 9999-12-31 9999-12-31T23:59:59.999999Z 2023-01-31 2023-03-31 2023-04-30 2023-12-31 1979-05-27T07:32:00.1234567891Z").split()
BAD_DATES = ("1979-5-27 1979-05-7 79-05-27 01979-05-27 1979-00-27 1979-13-27 1979-05-00 1979-05-32 2023-02-29 1900-02-29 2100-02-29 2024-02-30 2023-04-31 2023-06-31 2023-09-31 2023-11-31 1979-05-27T 1979-05-27T7:32:00 1979-05-27T07:32 1979-05-27T24:00:00 "
             "1979-05-27T07:60:00 1979-05-27T07:32:61 1979-05-27T07:32:0 1979-05-27T07:32:00. 1979-05-27T07:32:00.Z 1979-05-27T07:32:00,5 1979-05-27T07:32:00+7:00 1979-05-27T07:32:00+0700 1979-05-27T07:32:00+07 1979-05-27T07:32:00+24:00 1979-05-27T07:32:00+07:60 "
             "1979-05-27T07:32:00ZZ 1979-05-27Z 1979-05-27+07:00 07:32 7:32:00 07:32:00Z 07:32:00+01:00 24:00:00 07:60:00 07:32:61 07:32:00. 1979-05 1979-05- 1979/05/27 1979-05-27_07:32:00 19790527T073200 1979-05-27T07-32-00 -1979-05-27 +07:32:00 1979-05-27T07:32:00Q "
             "1_979-05-27 07:3_2:00 1979-05-27T07:32:00.1_0 1979-05-27T-07:32:00 1979-05-27T07:32:00z00 1979-05-27TT07:32:00").split()
GROUPS["dates and times"] = (
    [f"a={d}" for d in DATES] + [f"a=[{d},{d}]" for d in DATES[:5]] + ["a=1979-05-27 07:32:00Z", "a=1979-05-27 07:32:00", "a=1979-05-27 # c", "a=1979-05-27 ", "a=[1979-05-27 ]", "a={b=1979-05-27 }", "a={b=07:32:00, c=1}", "a=1979-05-27\t#"],
    [f"a={d}" for d in BAD_DATES] + ["a=1979-05-27  07:32:00", "a=1979-05-27 07:32", "a=1979-05-27 Z", "a=1979-05-27\t07:32:00", "a=1979-05-27 T07:32:00", "a=1979-05-27 1", "a=07:32:00 Z"])
GROUPS["arrays"] = (
    ["a=[]", "a=[ ]", "a=[\n]", "a=[#c\n]", "a=[1]", "a=[1,]", "a=[1,2]", "a=[ 1 , 2 , ]", "a=[\n1,\n2\n]", "a=[1,#c\n2]", "a=[1\n,2\n,\n]", "a=[1#c\n,#d\n]", "a=[\r\n1\r\n]", "a=[1,'x',true,1.5,[],{}]", "a=[[],[[]]]", "a=[[1,2],['x']]",
     "a=[{b=1},{b=2}]", "a=[{},{}]", f"a=[{Q3}\nx{Q3},{A3}y{A3}]", "a=['#']", "a = [ [ 1 ] , [ 2 ] ] # c", "a=[\t1\t]", "a.b=[1]", "a=[" * 1 + "[" * 50 + "]" * 50 + "]", "a=[1,\n\n#x\n\n2,\n\n]"],
    ["a=[", "a=[1", "a=[1,", "a=]", "a=[,]", "a=[,1]", "a=[1,,2]", "a=[1,,]", "a=[1 2]", "a=[1;2]", "a=[1\n2]", "a=[1]]", "a=[[1]", "a=[1}", "a=[a=1]", "a=[#]", "a=[1,#]", "a=[1]2", "a=[x]", "a=[\r1]", "a=[1 \x01]", "a=[1][2]", "a=['x' 'y']", "a=[1:2]",
     "a=[true false]", "a=[=]", "a=[[],", "a=[{]}", "a=[1]\na=[2]", "a=[1]\na.b=1", "a=[{}]\na.b=1", "a=[{}]\n[a.b]", "a=[{}]\n[[a]]", "a=[]\n[a]", "a=[]\n[[a]]", "a=[{b=1}]\n[[a.c]]", "a=[[{}]]\n[a.b]"])
GROUPS["inline tables"] = (
    ["a={}", "a={ }", "a={b=1}", "a={ b = 1 , c = 2 }", "a={b={c={}}}", "a={b.c=1}", "a={b.c=1,b.d=2}", "a={b.c.d=1,b.e=2}", "a={'b'=1,\"c\"=2}", "a={b=[1,\n2]}", "a={b=[\n{c=1},#x\n{d=2}]}", f"a={{b={Q3}\nx\n{Q3}}}", "a={\t}", "a={''=1}", "a={b=1} # c",
     "[[a]]\nb={}", "a={b=1979-05-27}", "a.b={c=1}\na.d={e=1}", "a={1=2}", "a={b . c = 1}", "[x]\na={b=1}\n[x.c]"],
    ["a={", "a={b", "a={b=", "a={b=1", "a={b=1,", "a={b=1,}", "a={,}", "a={,b=1}", "a={b=1,,c=2}", "a={b=1 c=2}", "a={b}", "a={1}", "a={=1}", "a={\n}", "a={b=1\n}", "a={\nb=1}", "a={b=1,\nc=2}", "a={b=1 #c\n}", "a={#}", "a={b=1}}", "a={b=1]", "a={b=1,b=2}", "a={b=1,'b'=2}",
     "a={b=1,b.c=2}", "a={b.c=1,b=2}", "a={b.c=1,b.c=2}", "a={b={},b.c=1}", "a={b={c=1},b.d=1}", "a={b=[],b.c=1}", "a={}\na.b=1", "a={b=1}\na.c=1", "a={}\n[a]", "a={}\n[a.b]", "a={}\n[[a]]", "a={}\n[[a.b]]", "a={b={}}\n[a.b.c]", "a={b={}}\na.b.c=1", "a={b.c=1}\n[a.b]",
     "a={b.c=1}\na.b.d=1", "a={b.c=1}\n[a.b.d]", "a.b={}\na.b.c=1", "[x]\na={}\n[x.a]", "[x]\na={}\n[x.a.b]", "a={}\na={}", "[a]\n[b]\nc={}\n[b.c.d]", "a={b=1}\na={c=1}", "a={[b]=1}", "a={b:1}", "[a.b]\n[x]\n[a]\nb={}", "a={b=[{c={}}]}\n[a.b.c]", "a={b={c=1,c=2}}", "a={b=1;c=2}",
     "[a.b]\nx=1\n[a]\nb={y=2}", "a={b=1}\r"])
GROUPS["tables"] = (
    ["[a]", "[a]\n", "[ a ]", "[\ta\t]", "[a.b]", "[ a . b ]", "['a']", '["a b"]', "['a.b'.c]", "['']", "[a]\nb=1", "[a]\n[b]", "[a]\n[a.b]", "[a.b]\n[a]", "[a.b.c]\n[a.b]\n[a]", "[a.b]\nc=1\n[a]\nd=1", "a=1\n[b]\na=1", "[a]\nb.c=1\n[a.d]", "[a]\nb.c=1\n[a.b.d]",
     "a.b=1\n[a.c]", "a.b.c=1\n[a.d]\n[a.b.e]", "[a.b.c]\n[a]\nb.d=1", "[a.b.c.d]\n[a]\nb.x=1\nb.c.y=2", "[x.y.z.w]\n[x]", "[1]", "[-]", "[true]", "[a]\r\nb=1\r\n", "[ä]".replace("ä", "'ä'"), "[a.b]\n[a.c]\n[a]\nd=1", "[[a.b]]\n[a]", "[[a.b]]\n[a]\nc=1", "[a]\n[A]", "[b]\n[a]\n[b.a]\n[a.b]",
     "[a.'']\n['']", "[fruit]\napple.color='red'\napple.taste.sweet=true\n[fruit.apple.texture]\nsmooth=true", "[a]\nb=[{}]\n[c]", "[a.b.c]\n[a]\nb.d.e=1"],
    ["[]", "[ ]", "[a", "a]", "[a]]", "[[a]", "[a]b", "[a] b=1", "[a]b=1", "[a]\n[a]", "[a]\n['a']", "[ a ]\n[a]", "[a.]", "[.a]", "[a..b]", "[a b]", "[a\n]", "[\na]", "[a.\nb]", "[ä]", "[a=1]", "[a#]", "[a]\nb=1\n[a.b]", "[a]\nb=1\n[a.b.c]", "a=1\n[a]", "a=1\n[a.b]", "a.b=1\n[a]",
     "a.b=1\n[a.b]", "[a]\nb.c=1\n[a.b]", "[a]\nb.c.d=1\n[a.b.c]", "[a]\nb.c=1\n[a]", "[a.b]\n[a]\nb=1", "[a.b]\n[a]\n[a.b]", "[a.b.c]\nz=9\n[a]\nb.c.t=1", "[a.b.c.d]\nz=9\n[a]\nb.c.d.k.t=1", "[a.b]\n[a]\nb.c=1", "[a.b.c]\n[a]\nb.d=1\n[a.b]", "[a.b]\nx=1\n[a]\nb.y=1", "[a]\n[a.b]\n[a]",
     "[a]\nb.c=1\nb=2", "[a]\nb=1\nb.c=2", f"[{Q3}a{Q3}]", "[a]\n[b]\n[a]", "[a,b]", "[a][b]", "[a]\r[b]", "[a] \x01", "['a]", "[a.b]\n[a.b]", "[a.b.c]\n[a]\nb.d=1\n[x]\n[a.b]", "[fruit]\napple.color='red'\n[fruit.apple]", "[fruit]\napple.taste.sweet=true\n[fruit.apple.taste]", "a={}\n[a.b]",
     "[+]", "[a.1.5.]", "[a. .b]", "[[a]\n]", "[a]\n=1"])
GROUPS["arrays of tables"] = (
    ["[[a]]", "[[ a ]]", "[[a]]\n[[a]]", "[[a]]\nb=1\n[[a]]\nb=2", "[[a.b]]\n[[a.b]]", "[[a]]\n[a.b]\n[[a]]\n[a.b]", "[[a]]\n[[a.b]]\n[[a.b]]\n[[a]]\n[[a.b]]", "[[a]]\n[a.b.c]\n[a.b]", "[a]\n[[a.b]]", "[[a]]\nb.c=1\n[[a]]\nb.c=2", "[[a]]\n[a.b]\nc=1\n[[a]]\n[a.b]\nc=2",
     "[[a]]\n[a.b]\n[[a.c]]\n[a.c.d]", "[[a.b.c]]\n[a]\n[a.b]", "a.b=1\n[[a.c]]", "[[a]] # c", "[['a b']]", "[[\ta\t]]", "[[a]]\n[[b]]\n[[a]]", "[[a]]\n[a.b.c]\n[[a]]\n[a.b.c]", "[[a]]\nb={}\n[[a]]\nb=[]", "[[fruit]]\nname='apple'\n[fruit.physical]\ncolor='red'\n[[fruit.variety]]\nname='x'\n[[fruit.variety]]\nname='y'",
     "[[a]]\n[a.b]\n[a.b.c]\n[[a]]\n[a.b.c]\n[a.b]", "[a.b]\n[[a.c]]\n[a]", "[[a]]\n[a.x.y]\n[a.x]\nz.w=1"],
    ["[[a]", "[[a] ]", "[ [a]]", "[[]]", "[[ ]]", "[[a.]]", "[[a]]b", "[[a]]\n[a]", "[a]\n[[a]]", "a=1\n[[a]]", "a=[]\n[[a]]", "a=[{}]\n[[a]]", "a={}\n[[a]]", "a.b=1\n[[a]]", "[a.b]\n[[a]]", "[[a]]\nb=1\n[a.b]", "[[a]]\nb=1\n[[a.b]]", "[[a]]\nb=[]\n[[a.b]]", "[[a]]\n[a.b]\n[a.b]", "[[a]]\n[a.b]\n[[a.b]]",
     "[[a]]\n[[a.b]]\n[a.b]", "[[a.b]]\n[a]\nb.c=1", "[[a.b]]\n[a]\nb=1", "[[a.b]]\n[[a]]", "[fruit.physical]\n[[fruit]]", "[[a]]\nb.c=1\n[a.b]", "[[a]]\nb.c=1\n[[a.b]]", "[[a]]\nb=[{}]\n[a.b.c]", "[[a]]\n[[a]]\nb=1\nb=2", "[[[a]]]", "[[a]]]", "[[a]]\n[a.b.c]\n[[a.b]]", "[[a,b]]", "[[a]] b=1", "[[a\n]]", "[x]\na.b=1\n[[x.a]]",
     "[[a.b]]\n[a.b]", "[[a]]\n[ a ]"])
# Only here: see the list in toml_oracle.py.
OURS_ALONE = ([b"\xef\xbb\xbfa=1", b"\xef\xbb\xbf", b"a=23:59:60", b"a=2016-12-31T23:59:60Z", b"a=0000-01-01"],
              [b"a=9223372036854775808", b"a=-9223372036854775809", b"a=0x8000000000000000", b"a=0xffffffffffffffff", b"a=" + b"9" * 4000, b"a=inf", b"a=+inf", b"a=-inf", b"a=nan", b"a=+nan", b"a=-nan", b"a=[nan]", b"a={b=inf}", b"a=1e309",
               b"a=-1e999", b"a=0o1000000000000000000000"])
BYTES = [b"a=\"\xff\"", b"a='\xc3'", b"# \xc3\x28", b"a=\"\xed\xa0\x80\"", b"a=\"\xc0\x80\"", b"a=\"\xf4\x90\x80\x80\"", b"\xfe\xff\x00a", b"\xff\xfea\x00=\x00", b"a=\"\xf0\x9f\x98\"", b"\x80", b"'\xff'=1", b"a=\xff"]

failures, number = [], 0


def report(name, problems):
    global number
    number += 1
    print(f"{'not ok' if problems else 'ok'} {number} - {name}")
    for problem in problems:
        print("#  ", problem)
    failures.extend(problems)


total = 0
for name, (valid, invalid) in GROUPS.items():
    texts = [t.encode() for t in valid + invalid]
    problems = []
    total += len(texts)
    for i, (text, answer) in enumerate(zip(texts, toml_oracle.ours(texts))):
        if ("ok" in answer) != (i < len(valid)):
            problems.append(f"{text!r} should be {'valid' if i < len(valid) else 'invalid'}, and is {answer!r}")
        elif "error" in answer and not answer["error"].startswith("line "):
            problems.append(f"{text!r}: the error names no place: {answer['error']!r}")
        elif toml_oracle.difference(text, answer):
            problems.append(toml_oracle.difference(text, answer))
    report(f"{name}: {len(valid)} valid, {len(invalid)} invalid", problems)
answers = toml_oracle.ours(OURS_ALONE[0] + OURS_ALONE[1] + BYTES)
total += len(answers)
report("where tomllib differs by intent", [f"{t!r}: {a!r}" for i, (t, a) in enumerate(zip(OURS_ALONE[0] + OURS_ALONE[1] + BYTES, answers)) if ("ok" in a) != (i < len(OURS_ALONE[0]))])
# Right texts together, each in tables of its own, are right; that is also where state could leak from one to the next.
joined = b"".join(b"[t%d]\n%s\n" % (i, t.encode()) for i, t in enumerate(GROUPS["integers"][0] + GROUPS["basic strings"][0] + GROUPS["arrays"][0] + GROUPS["inline tables"][0]) if b"\n[" not in t.encode() and not t.startswith("["))
report("many right texts in one", [p for p in [toml_oracle.difference(joined, toml_oracle.ours([joined])[0])] if p])
# Every prefix of a text that has everything.
everything = (f"a.'b c'.\"d\\u00e4\" = [1, 0x2_f, -3.5e1, {{x = 1979-05-27T07:32:00.5Z, y.z = '''\nq'''}}, # c\r\n]\n[t.u]\nv = {Q3}x\\\n  y\"\"{Q3}\r\n[[w]]\nk = true\n[w.m]\n[[w]]\n").encode()
prefixes = [everything[:i] for i in range(len(everything) + 1)]
report("every prefix of a text", [p for p in map(toml_oracle.difference, prefixes, toml_oracle.ours(prefixes)) if p])
print(f"1..{number}")
print(f"# {total} texts")
sys.exit(1 if failures else 0)
